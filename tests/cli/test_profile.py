"""`paceline profile`: the figures and their shape. What they are is the machine's business."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest
from gguf_files import write_tiny_llama

from paceline.models import open_model
from paceline.runtime.native import NativeRuntime, runnable_isas
from paceline.runtime.profile import ContextTimes, Profile, step_weight_bytes

Invoke = Callable[..., Any]  # see conftest.py
ROWS = [str(n) for n in range(1, 17)]


@pytest.fixture(autouse=True)
def quick_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real probe reads hundreds of megabytes; here only its use is tested."""
    monkeypatch.setattr(NativeRuntime, "read_bandwidth", lambda _self, **_options: 2e12)


def test_json(invoke: Invoke, long_llama_path: Path) -> None:
    result = invoke("profile", "--json", "-m", long_llama_path, "--rounds", 3, "--threads", 2)
    assert (result.exit_code, result.stderr) == (0, "")
    figures = json.loads(result.stdout)
    with open_model(long_llama_path) as model:
        assert figures["weight_bytes"] == step_weight_bytes(model)
    assert (figures["model"], figures["threads"], figures["rounds"]) == (str(long_llama_path), 2, 3)
    assert figures["isa"] == runnable_isas()[0]
    assert figures["bandwidth_gb_per_s"] == 2000
    assert figures["floor_ms"] == pytest.approx(figures["weight_bytes"] / 2e12 * 1e3)
    assert list(figures["contexts"]) == ["32", "1000"]
    for times in figures["contexts"].values():
        assert list(times) == ["t_ms", "spread_ms", "v", "over_floor", "ceiling", "best_rows"]
        assert [list(times[key]) for key in ("t_ms", "spread_ms", "v", "over_floor")] == [ROWS] * 4
        assert times["v"]["1"] == 1
        for n in ROWS:
            low, high = times["spread_ms"][n]
            assert 0 < low <= times["t_ms"][n] <= high
            assert times["v"][n] == pytest.approx(times["t_ms"][n] / times["t_ms"]["1"])
            assert times["over_floor"][n] == pytest.approx(times["t_ms"][n] / figures["floor_ms"])
        assert times["ceiling"] == pytest.approx(max(int(n) / times["v"][n] for n in ROWS))
        assert times["ceiling"] == pytest.approx(times["best_rows"] / times["v"][str(times["best_rows"])])


def test_tables(invoke: Invoke, tiny_llama_path: Path) -> None:
    result = invoke("profile", "-m", tiny_llama_path, "--rounds", 1, "--context", 0, "--context", 40)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "0 tokens of context" in result.stdout
    assert "40 tokens of context" in result.stdout
    assert "ceiling n / v(n)" in result.stdout
    assert result.stdout.count("No speculation can gain more than") == 2


def test_contexts_that_the_model_does_not_have(invoke: Invoke, tiny_llama_path: Path) -> None:
    result = invoke("profile", "--json", "-m", tiny_llama_path, "--rounds", 1)
    assert result.exit_code == 0
    assert result.stderr == "paceline: the context 1000 is left out: the model has 256 positions\n"
    assert list(json.loads(result.stdout)["contexts"]) == ["32"]
    result = invoke("profile", "-m", tiny_llama_path, "--context", 1000)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no context is left to measure at" in result.stderr


@pytest.mark.parametrize("arguments", [("--rounds", 0), ("--context", -1), ("--threads", 0)])
def test_numbers_out_of_range(invoke: Invoke, tiny_llama_path: Path, arguments: tuple[object, ...]) -> None:
    result = invoke("profile", "-m", tiny_llama_path, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("paceline: ")


def test_a_probe_that_is_wrong_is_told(invoke: Invoke, tiny_llama_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NativeRuntime, "read_bandwidth", lambda _self, **_options: 1.0)
    result = invoke("profile", "-m", tiny_llama_path, "--rounds", 1, "--context", 32)
    assert result.exit_code == 0
    assert result.stderr.startswith("paceline: T(1) at the context 32 is below the floor")


@pytest.mark.parametrize("is_head_tied", [True, False])
@pytest.mark.parametrize("tensor_type", ["F16", "Q4_1", "Q8_0"])
def test_weight_bytes_are_the_file_s(tmp_path: Path, tensor_type: str, is_head_tied: bool) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_llama(path, tensor_type=tensor_type, head_type="Q8_0", is_head_tied=is_head_tied)
    expected = sum(
        int(tensor.n_bytes)
        for tensor in gguf.GGUFReader(path).tensors
        if is_head_tied or tensor.name != "token_embd.weight"
    )
    with open_model(path) as model:
        assert step_weight_bytes(model) == expected


def test_figures() -> None:
    times = ContextTimes(32, {1: [2.0, 1.0, 3.0], 2: [4.0, 2.0, 2.5], 4: [5.0, 5.0, 50.0]})
    profile = Profile(bandwidth=100.0, weight_bytes=150, contexts=(times,))
    assert profile.floor == 1.5
    assert [times.time(n) for n in (1, 2, 4)] == [2.0, 2.5, 5.0]
    assert times.v(4) == 2.5
    assert [times.ceiling(n) for n in (1, 2, 4)] == [1.0, 1.6, 1.6]
    assert times.best_rows == 2
    assert times.spread(1) == (1.5, 2.5)
    assert ContextTimes(0, {1: [2.0]}).spread(1) == (2.0, 2.0)
