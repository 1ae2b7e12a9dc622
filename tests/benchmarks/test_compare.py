"""compare.py: what it measures and writes, and what it says to wrong arguments; requantize.py's arguments."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
QUICK = ("--rounds", "2", "--rows", "1,3", "--context", "8", "--decode", "2", "--prefill", "16", "--threads", "1")


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def last_line(result: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in result.stderr
    return result.stderr.splitlines()[-1]


def test_compare_writes_what_was_measured_and_on_what(tiny_llama_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "folder" / "out.json"
    result = run("compare.py", "--model", tiny_llama_path, "--json", out, "--title", "Tiny", *QUICK)
    assert result.returncode == 0, result.stderr
    found = json.loads(out.read_text())
    assert found["title"] == "Tiny"
    assert found["model"]["sha256"] == hashlib.sha256(tiny_llama_path.read_bytes()).hexdigest()
    assert found["model"]["bytes"] == tiny_llama_path.stat().st_size
    assert sum(found["model"]["types"].values()) == pytest.approx(1)
    assert (found["threads"], found["context"], found["prefill"]) == (1, 8, 16)
    assert list(found["seconds"]) == ["decode", "prefill", "rows 1", "rows 3"]
    for by_engine in found["seconds"].values():
        assert list(by_engine) == ["paceline"]
        assert len(by_engine["paceline"]) == 2  # the round that warms up is not among them
        assert all(value > 0 for value in by_engine["paceline"])
    facts = found["engines"]["paceline"]
    assert facts["agreement"] == 16
    assert facts["system"].startswith("native-")
    assert str(tmp_path) not in out.read_text(), "no paths of a machine in results"
    assert "--model tiny.gguf" in found["provenance"]["command"]
    assert "rows 3" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "llama.cpp"), "'llama.cpp' is not NAME=PYTHON"),
        (("--engine", "llama.cpp="), "'llama.cpp=' is not NAME=PYTHON"),
        (("--engine", "vllm=python"), "there is no engine 'vllm'; expected one of paceline, llama.cpp, ik_llama.cpp"),
        (("--engine", "llama.cpp+repack=python"), "llama.cpp has no option 'repack'; its options: fa"),
        (("--engine", "paceline+fa=python"), "paceline has no option 'fa'; its options: none"),
        (("--engine", "paceline=a", "--engine", "paceline=b"), "an engine is named twice"),
        (("--rounds", "1"), "--rounds is 1; expected 2 to 1000"),
        (("--prefill", "513"), "--prefill is 513; expected 1 to 512"),
        (("--threads", "0"), "--threads is 0; expected at least 1"),
        (("--rows", "0-4"), "rows are from 1 to 64"),
        (("--rows", "many"), "'many' is neither FIRST-LAST nor N,N,…"),
    ],
)
def test_compare_names_the_wrong_argument(
    arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "argv", ["compare.py", *arguments])
    import compare

    with pytest.raises(SystemExit) as ended:
        compare.main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_compare_says_which_engine_cannot_be_started(tiny_llama_path: Path, tmp_path: Path) -> None:
    missing = run("compare.py", "--model", tiny_llama_path, "--engine", f"llama.cpp={tmp_path / 'python'}", *QUICK)
    assert missing.returncode == 1
    assert last_line(missing) == f"llama.cpp: {tmp_path / 'python'} cannot be started: No such file or directory"
    empty = tmp_path / "empty"
    empty.write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    empty.chmod(0o755)
    without = run("compare.py", "--model", tiny_llama_path, "--engine", f"ik_llama.cpp+repack={empty}", *QUICK)
    assert without.returncode == 1
    assert last_line(without) == (
        f"ik_llama.cpp+repack: {empty} ended early: no such module (it needs ik-llama-cpp-python)"
    )


def test_requantize_names_the_wrong_argument(tiny_llama_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    assert "no.gguf is no file" in last_line(run("requantize.py", tmp_path / "no.gguf", "Q4_0", out))
    assert "invalid choice: 'Q9'" in last_line(run("requantize.py", tiny_llama_path, "Q9", out))
    out.write_bytes(b"kept")
    assert "exists; remove it first" in last_line(run("requantize.py", tiny_llama_path, "Q4_0", out))
    assert out.read_bytes() == b"kept"
