"""The weightless runtime keeps the contract, and the contract notices runtimes that do not."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from paceline.runtime import Scores, Segment
from paceline.testing import (
    CorruptCacheError,
    RuntimeSizes,
    TableModel,
    check_equal_runtimes,
    check_runtime,
    explicit_table,
    seeded_table,
)


class Broken(TableModel):
    """A TableModel with one fault, named by the tests below."""

    def __init__(self, fault: str = "") -> None:
        super().__init__(seeded_table(11), 11, num_padding=3, num_pages=60, max_length=200)
        self.fault = fault

    def forward(self, segments: Sequence[Segment]) -> Scores:
        if self.fault == "suppression":
            segments = [replace(segment, is_write_suppressed=False) for segment in segments]
        if self.fault == "tree":
            segments = [replace(segment, parents=()) for segment in segments]
        if self.fault == "late refusal":
            for segment in segments[:1]:
                self._write(replace(segment, tokens=tuple(max(0, token) for token in segment.tokens)))
        scores = super().forward(segments)
        if self.fault == "rows":
            scores.logits[:] += np.float32(1e-6) * len(scores.rows)
        if self.fault == "order":
            scores = replace(scores, rows=scores.rows[::-1])
        return scores

    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None:
        super().copy_slots(pages, () if self.fault == "copy_slots" else moves)

    def copy_page(self, source: int, destination: int) -> None:
        if self.fault != "copy_page":
            super().copy_page(source, destination)


def model(page_size: int = 4) -> TableModel:
    return TableModel(seeded_table(11), 11, num_padding=3, page_size=page_size, num_pages=240 // page_size)


@pytest.mark.parametrize("page_size", [1, 3, 4, 16])
@pytest.mark.parametrize("sizes", [RuntimeSizes(), RuntimeSizes(prefix=8, num_draft=4), RuntimeSizes(prefix=1)])
def test_table_model_keeps_the_contract(page_size: int, sizes: RuntimeSizes) -> None:
    check_runtime(lambda: model(page_size), sizes)


def test_table_models_of_one_table_are_equal() -> None:
    check_equal_runtimes(model(4), model(4))
    with pytest.raises(AssertionError, match="two runtimes agree"):
        check_equal_runtimes(model(), TableModel(seeded_table(11, seed=1), 11, num_padding=3, num_pages=60))


def test_contract_accepts_the_sound_variant() -> None:
    check_runtime(Broken)


@pytest.mark.parametrize("fault", ["suppression", "tree", "late refusal", "rows", "order", "copy_slots", "copy_page"])
def test_contract_notices(fault: str) -> None:
    with pytest.raises(AssertionError):
        check_runtime(lambda: Broken(fault), RuntimeSizes(num_rounds=4))


def segment(**changes: object) -> Segment:
    base = Segment(sequence=0, length=0, pages=(5, 2), tokens=(1, 2, 3), logits_rows=(2,))
    return replace(base, **changes)  # type: ignore[arg-type]


def test_never_written_slots_are_noticed() -> None:
    with pytest.raises(CorruptCacheError, match="sees token -1"):
        model().forward([segment(length=3)])


def test_slots_of_another_position_are_noticed() -> None:
    runtime = model()
    runtime.forward([segment(parents=(0, 0))])
    with pytest.raises(CorruptCacheError, match="of position 1 at 2"):
        runtime.forward([segment(length=3)])


def test_stale_tokens_change_the_logits() -> None:
    runtime = model()
    one, other = (runtime.forward([segment(tokens=(first, 2, 3))]).logits for first in (1, 4))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": (), "logits_rows": ()}, "no run"),
        ({"logits_rows": (2, 1)}, "logits_rows"),
        ({"logits_rows": (3,)}, "logits_rows"),
        ({"hidden_layers": (3,)}, "hidden_layers"),
        ({"tokens": (1, 2, 14)}, "token 14"),
    ],
)
def test_faulty_segments_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model().forward([segment(**changes)])


def test_faulty_batches_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        model().forward([segment(), segment()])
    with pytest.raises(ValueError, match="want logits"):
        TableModel(seeded_table(5), 5, max_logits_rows=1).forward([segment(logits_rows=(0, 1))])
    with pytest.raises(ValueError, match="different layers"):
        model().forward([segment(hidden_layers=(0,)), segment(sequence=1, pages=(0,), hidden_layers=(1,))])


def test_nan_at_and_padding() -> None:
    runtime = TableModel(seeded_table(5), 5, num_padding=2, nan_at=[1])
    logits = runtime.forward([segment(logits_rows=(0, 1, 2))]).logits
    assert np.isnan(logits).any(axis=1).tolist() == [False, True, False]
    assert logits.argmax(axis=1)[[0, 2]].tolist() == [5, 5]


def test_explicit_table_takes_the_longest_suffix() -> None:
    table = explicit_table({(): (0, 1), (1,): (2, 3), (0, 1): (4, 5)})
    seen: Callable[..., list[float]] = lambda *tokens: table(tokens).tolist()  # noqa: E731
    assert seen(0) == [0, 1]
    assert seen(1, 1) == [2, 3]
    assert seen(1, 0, 1) == [4, 5]
    with pytest.raises(KeyError, match="no entry"):
        explicit_table({(1,): (0, 1)})((0,))
