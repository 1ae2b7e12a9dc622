"""The native runtime beyond its numbers: instruction sets beside each other, lifetime of what it returns, refusals."""

import ctypes
import ctypes.util
import gc
import platform
from pathlib import Path

import numpy as np
import pytest
from gguf_files import write_tiny_llama

from paceline.errors import PacelineError, UsageError
from paceline.models import open_model
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime, runnable_isas

TOKENS = tuple(range(3, 33))
SEGMENT = Segment(0, 0, (0, 1), TOKENS, logits_rows=(5, 29))


def load(path: Path, **options: object) -> NativeRuntime:
    with open_model(path) as model:
        return NativeRuntime.load(model, NativeOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("isa", runnable_isas())
def test_an_instruction_set_can_be_chosen(tiny_llama_path: Path, isa: str) -> None:
    assert load(tiny_llama_path, isa=isa).info.name == f"native-{isa}"
    if isa == runnable_isas()[0]:
        assert load(tiny_llama_path).info.name == f"native-{isa}"


def test_an_instruction_set_that_is_not_here_is_named_beside_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"isa is 'sse9'; expected 'auto' or .*: " + ", ".join(runnable_isas())):
        NativeOptions(isa="sse9")


@pytest.mark.parametrize("isa", [name for name in runnable_isas() if name != "portable"])
@pytest.mark.parametrize("tensor_type", ["F32", "F16", "Q4_0", "Q4_1", "Q8_0"])
def test_instruction_sets_agree(tmp_path: Path, tensor_type: str, isa: str) -> None:
    """They differ in rounding alone. Where that moves an activation across a rounding border, its code changes by one:
    1/127 of the group's largest. Such steps are few, so the logits stay within a fraction of the quantisation error."""
    write_tiny_llama(tmp_path / "m.gguf", tensor_type=tensor_type)
    fast, portable = load(tmp_path / "m.gguf", isa=isa), load(tmp_path / "m.gguf", isa="portable")
    one, other = fast.forward([SEGMENT]).logits, portable.forward([SEGMENT]).logits
    tolerance = 1e-5 if tensor_type in ("F32", "F16") else 5e-3
    assert np.abs(one - other).max() < tolerance * np.abs(one).max()


def test_logits_outlive_the_runtime(tiny_llama_path: Path) -> None:
    runtime = load(tiny_llama_path)
    logits = runtime.forward([SEGMENT]).logits
    copy = logits.copy()
    del runtime
    gc.collect()
    np.testing.assert_array_equal(logits, copy)


def test_logits_are_read_only(tiny_llama_path: Path) -> None:
    logits = load(tiny_llama_path).forward([SEGMENT]).logits
    with pytest.raises(ValueError, match="read-only"):
        logits[0, 0] = 1.0


def test_hidden_states_outlive_a_larger_forward(tiny_llama_path: Path) -> None:
    runtime = load(tiny_llama_path)
    hidden = runtime.forward([Segment(0, 0, (0,), (1, 2), hidden_layers=(0, 1))]).hidden
    assert hidden is not None
    copy = hidden.copy()
    pages = tuple(range(16))
    runtime.forward([Segment(0, 0, pages, tuple(range(200)), hidden_layers=(0, 1, 2))])  # needs more memory than before
    np.testing.assert_array_equal(hidden, copy)


def test_a_runtime_without_its_weights_refuses(tiny_llama_path: Path) -> None:
    with open_model(tiny_llama_path) as model:
        runtime = NativeRuntime(model.config, NativeOptions())
    with pytest.raises(ValueError, match="not loaded"):
        runtime.forward([SEGMENT])


def test_the_callers_float_mode_does_not_matter(tiny_llama_path: Path) -> None:
    fesetround = ctypes.CDLL(ctypes.util.find_library("m")).fesetround
    runtime = load(tiny_llama_path, num_threads=2)
    expected = runtime.forward([SEGMENT]).logits.copy()
    upward = 0x800 if platform.machine() == "x86_64" else 0x400000
    assert fesetround(upward) == 0
    try:
        found = [runtime.forward([SEGMENT]).logits.copy() for _ in range(5)]
    finally:
        fesetround(0)
    for logits in found:
        np.testing.assert_array_equal(logits, expected)


@pytest.mark.parametrize(
    "options",
    [
        {"isa": "sse9"},
        {"vocab_size": 0},
        {"max_rows": 0},
        {"max_rows": True},
        {"num_threads": 1.5},
        {"max_length": "9"},
    ],
)
def test_options_out_of_range_are_named(tiny_llama_path: Path, options: dict[str, object]) -> None:
    name = "max_model_len" if "max_length" in options else next(iter(options))
    with pytest.raises(UsageError, match=name):
        load(tiny_llama_path, **options)


def test_a_cache_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "m.gguf", context_length=2**24)
    with pytest.raises(PacelineError, match="max_model_len"):
        load(tmp_path / "m.gguf", num_pages=2**31 - 1)


@pytest.mark.parametrize("isa", ["auto", "portable"])
def test_reading_memory_has_a_speed(tiny_llama_path: Path, isa: str) -> None:
    assert load(tiny_llama_path, isa=isa, num_threads=3).read_bandwidth(num_bytes=1 << 20, repeats=2) > 0


def test_a_sequence_appears_once(tiny_llama_path: Path) -> None:
    with pytest.raises(ValueError, match="twice"):
        load(tiny_llama_path).forward([SEGMENT, SEGMENT])


@pytest.mark.parametrize(
    ("segment", "message"),
    [
        (Segment(0, 0, (0,), tuple(range(17))), "17"),
        (Segment(0, 250, tuple(range(17)), (1, 2, 3, 4, 5, 6, 7)), "capacity of 256"),
        (Segment(0, 0, (0,), (320,)), "320"),
        (Segment(0, 0, (0,), (2**40,)), "32-bit"),
        (Segment(0, 2**31 - 1, (0,), (1,)), "2147483648"),
        (Segment(0, 0, (99,), (1,)), "99"),
        (Segment(0, 0, (0,), (1, 2), logits_rows=(1, 0)), "ascend"),
        (Segment(0, 0, (0,), (1, 2), is_write_suppressed=True), "suppressed"),
        (Segment(0, 0, (0,), (1,), hidden_layers=(3,)), "layer 3"),
    ],
)
def test_refusals_name_what_is_wrong(tiny_llama_path: Path, segment: Segment, message: str) -> None:
    runtime = load(tiny_llama_path)
    with pytest.raises(ValueError, match=message):
        runtime.forward([segment])
