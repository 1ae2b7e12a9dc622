"""Tracing: what phases are timed, and that it changes nothing else."""

from pathlib import Path

import numpy as np
import pytest
from gguf_files import write_tiny_llama

from paceline import _native
from paceline.models import open_model
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime

TOKENS = tuple(range(3, 33))
PLAIN = Segment(0, 0, (0, 1), TOKENS, logits_rows=(5, 29))
HIDDEN = Segment(0, 0, (0, 1), TOKENS, logits_rows=(5, 29), hidden_layers=(0, 1, 2))
SILENT = Segment(0, 0, (0, 1), TOKENS)
OF_NO_LAYER = {"embed", "norm", "head"}
OF_EVERY_LAYER = {"norm", "qkv", "store", "attention", "o", "gate_up", "gating", "down"}


@pytest.fixture(scope="module", params=[1, 2, 3])
def runtime(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NativeRuntime:
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    write_tiny_llama(path, num_layers=2)
    with open_model(path) as model:
        return NativeRuntime.load(model, NativeOptions(num_threads=request.param))


def worked(times: list[list[int]], scope: int) -> set[str]:
    return {kind for kind, time in zip(_native.PHASE_KINDS, times[scope], strict=True) if time > 0}


def test_nothing_is_traced_unless_asked_for(runtime: NativeRuntime) -> None:
    runtime.forward([PLAIN])
    trace = runtime.trace()
    assert (trace.num_forwards, trace.forward_ns, trace.work, trace.wait) == (0, 0, [], [])


@pytest.mark.parametrize("segment", [PLAIN, HIDDEN, SILENT])
def test_results_are_the_same_bits(runtime: NativeRuntime, segment: Segment) -> None:
    plain = runtime.forward([segment])
    logits, hidden = plain.logits.copy(), None if plain.hidden is None else plain.hidden.copy()
    runtime.start_trace()
    traced = runtime.forward([segment])
    runtime.stop_trace()
    np.testing.assert_array_equal(traced.logits, logits)
    assert (traced.hidden is None) == (hidden is None)
    if hidden is not None:
        np.testing.assert_array_equal(traced.hidden, hidden)
    assert runtime.trace().work == []


def test_every_phase_is_timed_in_its_place(runtime: NativeRuntime) -> None:
    runtime.start_trace()
    runtime.forward([PLAIN])
    trace = runtime.trace()
    runtime.stop_trace()
    assert trace.num_forwards == 1
    assert [worked(trace.work, scope) for scope in range(3)] == [OF_NO_LAYER, OF_EVERY_LAYER, OF_EVERY_LAYER]
    total = sum(map(sum, trace.work)) + sum(map(sum, trace.wait))
    assert 0 < total <= trace.forward_ns * runtime.num_threads


def test_hidden_states_are_timed_too(runtime: NativeRuntime) -> None:
    runtime.start_trace()
    runtime.forward([HIDDEN])
    trace = runtime.trace()
    runtime.stop_trace()
    assert "hidden" in set().union(*(worked(trace.work, scope) for scope in range(3)))


def test_forwards_add_up_until_the_next_start(runtime: NativeRuntime) -> None:
    runtime.start_trace()
    runtime.forward([PLAIN])
    first = runtime.trace()
    runtime.forward([PLAIN])
    second = runtime.trace()
    assert second.num_forwards == 2
    assert second.forward_ns > first.forward_ns
    assert (np.array(second.work) >= np.array(first.work)).all()
    runtime.start_trace()
    assert (runtime.trace().num_forwards, runtime.trace().forward_ns) == (0, 0)
    assert not np.array(runtime.trace().work).any()
    runtime.stop_trace()


def test_a_refused_forward_is_not_counted(runtime: NativeRuntime) -> None:
    runtime.start_trace()
    with pytest.raises(ValueError):
        runtime.forward([Segment(0, 0, (), TOKENS)])
    assert runtime.trace().num_forwards == 0
    runtime.stop_trace()


@pytest.mark.parametrize("isa", ["auto", "portable"])
def test_rates_are_measured(tiny_llama_path: Path, isa: str) -> None:
    with open_model(tiny_llama_path) as model:
        runtime = NativeRuntime.load(model, NativeOptions(num_threads=2, isa=isa))  # type: ignore[arg-type]
    assert runtime.code_rate(repeats=1) > 0
    assert runtime.float_rate(repeats=1) > 0
    with pytest.raises(ValueError):
        runtime.code_rate(repeats=0)
