"""The native runtime beyond its numbers: instruction sets beside each other, fork, lifetime of what it returns."""

import ctypes
import ctypes.util
import gc
import os
import platform
import threading
from pathlib import Path

import numpy as np
import pytest
from gguf_files import write_tiny_llama

from paceline import _native
from paceline.errors import PacelineError, UsageError
from paceline.models import open_model
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.runtime.threads import default_num_threads

TOKENS = tuple(range(3, 33))
SEGMENT = Segment(0, 0, (0, 1), TOKENS, logits_rows=(5, 29))


def load(path: Path, **options: object) -> NativeRuntime:
    with open_model(path) as model:
        return NativeRuntime.load(model, NativeOptions(**options))  # type: ignore[arg-type]


@pytest.mark.skipif(not _native.has_avx2(), reason="this processor has no AVX2")
@pytest.mark.parametrize("tensor_type", ["F32", "F16", "Q4_0", "Q4_1", "Q8_0"])
def test_instruction_sets_agree(tmp_path: Path, tensor_type: str) -> None:
    """They differ in rounding alone. Where that moves an activation across a rounding border, its code changes by one:
    1/127 of the group's largest. Such steps are few, so the logits stay within a fraction of the quantisation error."""
    write_tiny_llama(tmp_path / "m.gguf", tensor_type=tensor_type)
    fast, portable = load(tmp_path / "m.gguf"), load(tmp_path / "m.gguf", isa="portable")
    assert (fast.info.name, portable.info.name) == ("native-avx2", "native-portable")
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


def test_a_forked_child_computes_too(tiny_llama_path: Path) -> None:
    runtime = load(tiny_llama_path, num_threads=3)
    expected = runtime.forward([SEGMENT]).logits.copy()
    child = os.fork()
    if child == 0:  # no pytest in here: leave by _exit, whatever happens
        status = 1
        try:
            status = int(not np.array_equal(runtime.forward([SEGMENT]).logits, expected))
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(runtime.forward([SEGMENT]).logits, expected)


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_forked_child_with_threads_of_its_own(tiny_llama_path: Path, is_dropped: bool) -> None:
    """The child's threads may get the stacks and handles of those that the fork did not take along."""
    runtime = load(tiny_llama_path, num_threads=8)
    expected = runtime.forward([SEGMENT]).logits.copy()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            event = threading.Event()
            threads = [threading.Thread(target=event.wait) for _ in range(4)]
            for thread in threads:
                thread.start()
            if is_dropped:
                del runtime
                gc.collect()
                status = 0
            else:
                status = int(not np.array_equal(runtime.forward([SEGMENT]).logits, expected))
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


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


def test_a_second_caller_is_refused(tiny_llama_path: Path) -> None:
    """forward lets other Python threads run: whoever comes meanwhile gets an error, not the wrong numbers."""
    runtime = load(tiny_llama_path, num_threads=1)
    expected = runtime.forward([SEGMENT]).logits.copy()
    outcomes: list[object] = []

    def work() -> None:
        for _ in range(200):
            try:
                runtime.forward([SEGMENT])
                outcomes.append(True)
            except RuntimeError as error:
                outcomes.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(outcome is True or "another thread" in str(outcome) for outcome in outcomes)
    np.testing.assert_array_equal(runtime.forward([SEGMENT]).logits, expected)


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
        {"isa": "avx2"},
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


def test_two_runtimes_in_two_threads(tiny_llama_path: Path) -> None:
    runtimes = [load(tiny_llama_path, num_threads=4) for _ in range(2)]
    expected = runtimes[0].forward([SEGMENT]).logits.copy()
    results: list[list[bool]] = [[], []]

    def work(index: int) -> None:
        for _ in range(50):
            results[index].append(np.array_equal(runtimes[index].forward([SEGMENT]).logits, expected))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[True] * 50] * 2


def test_more_threads_than_processors(tiny_llama_path: Path) -> None:
    one = load(tiny_llama_path, num_threads=1).forward([SEGMENT]).logits.copy()
    many = load(tiny_llama_path, num_threads=40)
    for _ in range(20):
        np.testing.assert_array_equal(many.forward([SEGMENT]).logits, one)


def test_default_threads_follow_the_affinity(tiny_llama_path: Path) -> None:
    everything = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(everything)})
        assert default_num_threads() == 1
        assert load(tiny_llama_path).num_threads == 1
    finally:
        os.sched_setaffinity(0, everything)
    assert 1 <= default_num_threads() <= len(everything)


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
