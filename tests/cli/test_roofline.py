"""`paceline profile --roofline`: the parts of a step and their limits. What the times are is the machine's business."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from gguf_files import VARIANTS, write_tiny_model

from paceline.models import open_model
from paceline.runtime.native import NativeRuntime
from paceline.runtime.profile import step_weight_bytes

Invoke = Callable[..., Any]  # see conftest.py
MATRICES = ["q+k+v", "o", "gate+up", "down", "head"]
OTHERS = ["waiting", "rest of the forward", "sampling", "Python"]
PARTS = [
    *("embedding", "norms", "q+k+v", "rotation, store", "attention", "o", "gate+up", "gating", "down", "head"),
    *OTHERS,
]
STEP_KEYS = ["rows", "context", "step_ms", "forward_ms", "reading_ms", "multiplying_ms", "limit_ms", "parts"]
PART_KEYS = [
    *("name", "shape", "types", "bytes", "multiply_adds", "ms", "waiting_ms", "share"),
    *("limit_ms", "limit_set_by", "of_limit"),
]
BANDWIDTH, CODE_RATE, FLOAT_RATE = 2e9, 3e9, 1e9


@pytest.fixture(autouse=True)
def known_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probes take their time and say what the machine likes; here only their use is tested."""
    for name, rate in {"read_bandwidth": BANDWIDTH, "code_rate": CODE_RATE, "float_rate": FLOAT_RATE}.items():
        monkeypatch.setattr(NativeRuntime, name, lambda *_, rate=rate, **__: rate)


def roofline(invoke: Invoke, path: Path, *arguments: object) -> dict[str, Any]:
    result = invoke("profile", "--roofline", "--json", "-m", path, "--rounds", 2, *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


def named(step: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [part for part in step["parts"] if part["name"] == name]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_parts_add_up(invoke: Invoke, tiny_llama_path: Path, threads: int) -> None:
    figures = roofline(invoke, tiny_llama_path, "--threads", threads, "--context", 40, "--context", 4)
    assert list(figures["contexts"]) == ["40", "4"]
    found = figures["roofline"]
    assert list(found) == ["code_rate_g_per_s", "float_rate_g_per_s", "steps"]
    assert (found["code_rate_g_per_s"], found["float_rate_g_per_s"]) == (3, 1)
    assert [(s["rows"], s["context"]) for s in found["steps"]] == [(1, 4), (4, 4), (8, 4), (16, 4), (1, 40)]
    for step in found["steps"]:
        assert list(step) == STEP_KEYS
        assert [part["name"] for part in step["parts"]] == PARTS
        assert all(list(part) == PART_KEYS for part in step["parts"])
        assert sum(part["ms"] for part in step["parts"]) == pytest.approx(step["step_ms"])
        assert sum(part["share"] for part in step["parts"]) == pytest.approx(1)
        native = [part for part in step["parts"] if part["name"] not in ("sampling", "Python")]
        assert sum(part["ms"] for part in native) == pytest.approx(step["forward_ms"])
        [waiting] = named(step, "waiting")
        assert waiting["ms"] == pytest.approx(sum(part["waiting_ms"] for part in step["parts"]))
        worked = [part for part in step["parts"] if part["name"] not in ("waiting", "rest of the forward")]
        assert all(part["ms"] > 0 for part in worked)


@pytest.mark.parametrize("is_head_tied", [True, False])
def test_bytes_are_those_of_a_step(invoke: Invoke, tmp_path: Path, is_head_tied: bool) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_model(path, architecture="qwen2", head_type="Q8_0", is_head_tied=is_head_tied)
    with open_model(path) as model:
        weight_bytes, config = step_weight_bytes(model), model.config
    for step in roofline(invoke, path, "--context", 8)["roofline"]["steps"]:
        written = step["rows"] * config.num_layers * 4 * config.num_kv_heads * config.head_dim
        stored = named(step, "rotation, store")[0]["bytes"] - written
        read = sum(part["bytes"] for name in ("norms", *MATRICES) for part in named(step, name))
        assert read + stored == weight_bytes


def test_limits_of_products(invoke: Invoke, tmp_path: Path) -> None:
    """A head of 8-bit codes takes two products for each multiply-add."""
    path = tmp_path / "tiny.gguf"
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_heads": 4, "num_kv_heads": 2, "vocab_size": 320}
    write_tiny_model(path, head_type="Q8_0", num_layers=2, **sizes)
    shapes = {  # by part: shape, types, weights of all layers, products of each
        "q+k+v": ("64+32+32 x 64", "Q4_1", 2 * 128 * 64, 1),
        "o": ("64 x 64", "Q4_1", 2 * 64 * 64, 1),
        "gate+up": ("96+96 x 64", "Q4_1", 2 * 192 * 64, 1),
        "down": ("64 x 96", "Q4_1", 2 * 96 * 64, 1),
        "head": ("320 x 64", "Q8_0", 320 * 64, 2),
    }
    for step in roofline(invoke, path, "--context", 8)["roofline"]["steps"]:
        for name, (shape, types, num_weights, num_products) in shapes.items():
            [part] = named(step, name)
            assert (part["shape"], part["types"]) == (shape, types)
            assert part["multiply_adds"] == step["rows"] * num_weights
            assert part["bytes"] == num_weights * (34 if types == "Q8_0" else 20) // 32
            reading = part["bytes"] / BANDWIDTH * 1e3
            multiplying = num_products * part["multiply_adds"] / CODE_RATE * 1e3
            assert part["limit_ms"] == pytest.approx(max(reading, multiplying))
            assert part["limit_set_by"] == ("bytes" if reading >= multiplying else "arithmetic")
            assert part["of_limit"] == pytest.approx(part["limit_ms"] / part["ms"])
        limits = [part["limit_ms"] for part in step["parts"] if part["limit_ms"] is not None]
        assert len(limits) == len(MATRICES) + 1
        assert step["limit_ms"] == pytest.approx(sum(limits))
        assert step["reading_ms"] == pytest.approx(sum(part["bytes"] for part in step["parts"]) / BANDWIDTH * 1e3)


def test_float_weights_are_held_against_float_rates(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_model(path, tensor_type="F16")
    step = roofline(invoke, path, "--context", 8)["roofline"]["steps"][-1]
    [down] = named(step, "down")
    assert (down["types"], down["limit_set_by"]) == ("F16", "arithmetic")
    assert down["limit_ms"] == pytest.approx(down["multiply_adds"] / FLOAT_RATE * 1e3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_attention_is_what_its_rows_see(invoke: Invoke, tmp_path: Path, variant: str) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_model(path, **VARIANTS[variant])
    with open_model(path) as model:
        config = model.config
    for step in roofline(invoke, path, "--context", 24, "--context", 50)["roofline"]["steps"]:
        num_read = num_seen = 0
        for layer in config.layers:
            seen = [
                {at for at in range(position + 1) if layer.window is None or at > position - layer.window}
                for position in range(step["context"], step["context"] + step["rows"])
            ]
            num_read += len(set().union(*seen))
            num_seen += sum(map(len, seen))
        [attention] = named(step, "attention")
        assert attention["bytes"] == num_read * config.num_kv_heads * config.head_dim * 2 * 2
        assert attention["multiply_adds"] == 2 * num_seen * config.num_heads * config.head_dim


def test_a_step_has_something_behind_it(invoke: Invoke, tiny_llama_path: Path) -> None:
    figures = roofline(invoke, tiny_llama_path, "--context", 0)
    assert list(figures["contexts"]) == ["0"]
    assert [(s["rows"], s["context"]) for s in figures["roofline"]["steps"]] == [(1, 1), (4, 1), (8, 1), (16, 1)]


def test_the_longest_context(invoke: Invoke, tiny_llama_path: Path) -> None:
    """Of the model's 256 positions a step of 16 rows takes 16, and the token that it decides another."""
    longest = roofline(invoke, tiny_llama_path, "--context", 239)["roofline"]["steps"][-1]
    assert (longest["rows"], longest["context"]) == (16, 239)


def test_nothing_of_it_unless_asked_for(invoke: Invoke, tiny_llama_path: Path) -> None:
    result = invoke("profile", "--json", "-m", tiny_llama_path, "--rounds", 1, "--context", 8)
    assert "roofline" not in json.loads(result.stdout)


def test_tables(invoke: Invoke, tiny_llama_path: Path) -> None:
    result = invoke("profile", "--roofline", "-m", tiny_llama_path, "--rounds", 1, "--context", 1, "--context", 40)
    assert result.exit_code == 0
    assert "2.0 GB/s read, 3 · 10⁹ products of codes and 1 · 10⁹ float32 multiply-adds a second" in result.stdout
    for title in ("1 row behind 1 cached token", "16 rows behind 1 cached token", "1 row behind 40 cached tokens"):
        assert f"A step of {title}" in result.stdout
    for name in PARTS:
        assert result.stdout.count(f"\n {name.split()[0]} ") >= 5


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_plot(invoke: Invoke, tiny_llama_path: Path, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    path = tmp_path / f"roof.{kind}"
    roofline(invoke, tiny_llama_path, "--context", 8, "--plot", path)
    data = path.read_bytes()
    if kind == "png":
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        assert data[12:16] == b"IHDR"
        assert data.endswith(b"IEND\xaeB`\x82")
    else:
        assert ElementTree.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("roof.pdf", "expected a file that ends in .png or .svg"),
        ("roof", "expected a file that ends in .png or .svg"),
        ("nowhere/roof.png", "there is no such folder"),
    ],
)
def test_plots_that_cannot_be(invoke: Invoke, tiny_llama_path: Path, tmp_path: Path, name: str, message: str) -> None:
    result = invoke("profile", "--roofline", "-m", tiny_llama_path, "--plot", tmp_path / name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_plot_needs_the_roofline(invoke: Invoke, tiny_llama_path: Path, tmp_path: Path) -> None:
    result = invoke("profile", "-m", tiny_llama_path, "--plot", tmp_path / "roof.png")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "paceline: --plot draws the roofline; give --roofline too\n"


def test_a_plot_without_matplotlib(
    invoke: Invoke, tiny_llama_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # which an import takes for "not there"
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    result = invoke("profile", "--roofline", "-m", tiny_llama_path, "--plot", tmp_path / "roof.png")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "paceline[plot]" in result.stderr
