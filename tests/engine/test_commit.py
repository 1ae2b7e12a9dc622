"""Scan and trim by themselves: what a commit would make real, before anything does."""

import pytest
from samplers import greedy_sampler

from paceline.acceptance import Outcome
from paceline.engine import FinishReason, Request, SequenceState
from paceline.engine.batch import BatchEntry
from paceline.engine.commit import decide


def entry_of(num_run: int = 1, max_tokens: int = 20, stop_ids: tuple[int, ...] = ()) -> BatchEntry:
    """Two prompt tokens, one emitted, the newest not cached; with a longer run, a prompt's last chunk."""
    is_prefill = num_run > 1
    state = SequenceState(
        id=3,
        request=Request(()),
        tokens=[0] * num_run if is_prefill else [0, 0, 0],
        num_prompt=num_run if is_prefill else 2,
        max_tokens=max_tokens,
        stop_ids=frozenset(stop_ids),
        sampler=greedy_sampler(100),
        length=0 if is_prefill else 2,
    )
    return BatchEntry(state, num_run, is_prefill=is_prefill, is_sampling=True)


OUTCOME = Outcome(3, path=(0, 2, 3, 7), tokens=(11, 12, 13, 14))


@pytest.mark.parametrize(
    ("stop_ids", "max_tokens", "num_kept", "reason"),
    [
        ((), 20, 4, None),
        ((11,), 20, 1, FinishReason.STOP),
        ((13, 12), 20, 2, FinishReason.STOP),
        ((14,), 20, 4, FinishReason.STOP),
        ((), 2, 1, FinishReason.LENGTH),
        ((), 5, 4, FinishReason.LENGTH),
        ((12,), 3, 2, FinishReason.STOP),
        ((13,), 3, 2, FinishReason.LENGTH),
    ],
)
def test_rows_behind_an_end_are_never_committed(
    stop_ids: tuple[int, ...], max_tokens: int, num_kept: int, reason: FinishReason | None
) -> None:
    commit = decide(entry_of(max_tokens=max_tokens, stop_ids=stop_ids), OUTCOME)
    assert tuple(commit.path) == OUTCOME.path[:num_kept]
    assert commit.tokens == OUTCOME.tokens[:num_kept]
    assert commit.finish_reason is reason
    assert (commit.num_accepted, commit.num_draft) == (3, min(3, num_kept))
    assert commit.num_discarded == 4 - num_kept


@pytest.mark.parametrize("num_decided", [0, 1, 2])
def test_row_that_decided_nothing_is_not_committed(num_decided: int) -> None:
    outcome = Outcome(3, (0, 1, 2)[: num_decided + 1], (11, 12)[:num_decided], error="not finite")
    commit = decide(entry_of(), outcome)
    assert tuple(commit.path) == (0, 1)[:num_decided]
    assert commit.finish_reason is FinishReason.ERROR
    assert (commit.num_draft, commit.num_discarded) == (num_decided, 0)


def test_prompt_chunk_is_committed_whole() -> None:
    entry = entry_of(num_run=4)
    assert tuple(decide(entry, None).path) == (0, 1, 2, 3)
    commit = decide(entry, Outcome(3, (0,), (11,)))
    assert tuple(commit.path) == (0, 1, 2, 3)
    assert (commit.tokens, commit.num_draft) == ((11,), 0)
