"""The native runtime beyond its numbers: instruction sets beside each other, fork, lifetime of what it returns."""

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from gguf_files import write_tiny_llama

from paceline import _native
from paceline.models import GGUFFile
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.runtime.threads import default_num_threads

TOKENS = tuple(range(3, 33))
SEGMENT = Segment(0, 0, (0, 1), TOKENS, logits_rows=(5, 29))


def load(path: Path, **options: object) -> NativeRuntime:
    with GGUFFile.open(path) as file:
        return NativeRuntime.load(file, NativeOptions(**options))  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("segment", "message"),
    [
        (Segment(0, 0, (0,), tuple(range(17))), "17"),
        (Segment(0, 250, tuple(range(17)), (1, 2, 3, 4, 5, 6, 7)), "capacity of 256"),
        (Segment(0, 0, (0,), (320,)), "320"),
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
