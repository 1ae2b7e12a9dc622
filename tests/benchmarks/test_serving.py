"""batching.py, streams.py and sampling.py: they run, and write what they measured."""

import json
import subprocess
import sys
from pathlib import Path

from gguf_files import write_tiny_llama

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def figures(script: str, out: Path, *arguments: str | Path) -> dict[str, object]:
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments), "--json", str(out)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout
    return json.loads(out.read_text())


def test_batching(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "m.gguf", context_length=4096)
    arguments = ("--model", tmp_path / "m.gguf", "--title", "Tiny", "--rounds", "2", "--requests", "40")
    found = figures("batching.py", tmp_path / "out.json", *arguments)
    assert found["title"] == "Tiny"
    for name in ("speedup", "against_ceiling", "host_ms"):
        assert list(found[name]) == ["1", "2", "4", "8", "16"]  # type: ignore[call-overload]
    assert found["growth"]["num_free_pages"] == found["growth"]["num_pages"]  # type: ignore[index]
    assert all(cold > 0 < hit for cold, hit in found["prefix_seconds"])  # type: ignore[attr-defined]


def test_streams(tiny_llama_path: Path, tmp_path: Path) -> None:
    found = figures("streams.py", tmp_path / "out.json", "--model", tiny_llama_path, "--streams", "3", "--tokens", "9")
    assert found["num_streams"] == 3
    assert set(map(len, found["ms"].values())) == {len(found["share"])}  # type: ignore[attr-defined, arg-type]


def test_sampling(tmp_path: Path) -> None:
    assert figures("sampling.py", tmp_path / "out.json", "--rounds", "2")
