"""Rehearsed steps are real ones: of the rows asked for, with drafts that all stand, and with no prefill before them."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from gguf_files import write_tiny_llama

from paceline.engine.rehearsal import EngineRehearsal
from paceline.models import open_model
from paceline.runtime.base import Runtime, RuntimeInfo, Scores, Segment
from paceline.runtime.native import NativeOptions, NativeRuntime

CONTEXT = 300


class Spy(Runtime):
    """Passes everything on and remembers the forwards."""

    def __init__(self, runtime: NativeRuntime) -> None:
        self._runtime = runtime
        self.segments: list[Segment] = []

    @property
    def info(self) -> RuntimeInfo:
        return self._runtime.info

    def forward(self, segments: Sequence[Segment]) -> Scores:
        self.segments += segments
        return self._runtime.forward(segments)

    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None:
        self._runtime.copy_slots(pages, moves)

    def copy_page(self, source: int, destination: int) -> None:
        self._runtime.copy_page(source, destination)


@pytest.fixture
def spy(tmp_path: Path) -> Spy:
    write_tiny_llama(tmp_path / "tiny.gguf", context_length=2 * CONTEXT)
    with open_model(tmp_path / "tiny.gguf") as model:
        runtime = NativeRuntime.load(model, NativeOptions(max_length=CONTEXT + 17, num_threads=2))
    runtime.fill_pages(range(runtime.info.num_pages))
    return Spy(runtime)


@pytest.mark.parametrize("rows", [1, 4, 16])
def test_a_step_of_so_many_rows(spy: Spy, rows: int) -> None:
    rehearsal = EngineRehearsal(spy)
    rehearsal.prepare([(rows, CONTEXT)])
    prepared, spy.segments = spy.segments, []
    assert [len(segment.tokens) for segment in prepared] == [1] * (rows - 1)
    times = rehearsal(rows, CONTEXT)
    [segment] = spy.segments
    assert (segment.length, len(segment.tokens), segment.logits_rows) == (CONTEXT, rows, tuple(range(rows)))
    assert segment.tokens[: rows - 1] == tuple(earlier.tokens[0] for earlier in prepared)
    assert 0 < times.sampling_ns < times.step_ns
    # The row of each token but the last decides the next: all of the draft stands.
    logits = spy.forward([segment]).logits[:, : spy.info.vocab_size]
    assert tuple(logits.argmax(axis=1)[:-1].tolist()) == segment.tokens[1:]


def test_drafts_are_asked_for_where_nobody_prepared(spy: Spy) -> None:
    EngineRehearsal(spy)(4, CONTEXT)
    assert [len(segment.tokens) for segment in spy.segments] == [1, 1, 1, 4]


@pytest.mark.parametrize(("rows", "context"), [(0, 8), (1, 0)])
def test_steps_that_cannot_be(spy: Spy, rows: int, context: int) -> None:
    with pytest.raises(ValueError, match="expected at least 1 of each"):
        EngineRehearsal(spy)(rows, context)


@pytest.mark.parametrize(("rows", "message"), [(17, "expected 17 rows"), (18, "there is no room for another step")])
def test_steps_that_do_not_fit(spy: Spy, rows: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        EngineRehearsal(spy)(rows, CONTEXT)
