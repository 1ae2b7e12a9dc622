"""Defects to plant into an engine, so that tests can show that they would be noticed."""

from collections.abc import Callable, Sequence

import pytest

from paceline.acceptance import Outcome
from paceline.cache import CacheCoordinator, PagedCache
from paceline.cache.entry import Entry
from paceline.cache.pool import PagePool
from paceline.engine import Engine, FinishReason, SequenceState
from paceline.engine import commit as engine_commit
from paceline.engine.roster import Roster
from paceline.engine.scheduler import Scheduler
from paceline.engine.turn import Turn
from paceline.testing import TableModel

Plant = Callable[[pytest.MonkeyPatch], None]


def uncommitted_row_is_published(patch: pytest.MonkeyPatch) -> None:
    """The page that the newest token would fill, while its slot still holds what a rejected draft token wrote."""
    publish = PagedCache.publish

    def defect(cache: PagedCache, sequence: int, tokens: Sequence[int]) -> None:
        entry = cache._entries.get(sequence)
        if entry is None:
            return
        length = entry.length
        entry.length = min(length + 1, len(entry.pages) * cache.page_size)
        publish(cache, sequence, (*tokens, 0))
        entry.length = length

    patch.setattr(PagedCache, "publish", defect)


def rejected_row_stays_in_place(patch: pytest.MonkeyPatch) -> None:
    """A tree's accepted path is not moved."""
    patch.setattr(TableModel, "copy_slots", lambda *_: None)


def late_result_is_handed_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Turn, "noted", lambda _: set())


def preemption_in_the_middle_of_a_step(patch: pytest.MonkeyPatch) -> None:
    def defect(engine: Engine, sequence: int) -> None:
        engine._scheduler.preempt(sequence)

    patch.setattr(Engine, "preempt", defect)


def shared_page_is_written(patch: pytest.MonkeyPatch) -> None:
    """The page that agrees at its beginning only is taken itself, not its copy."""

    def defect(cache: PagedCache, sequence: int, tokens: Sequence[int], namespace: str) -> int:
        match = cache._index.find(tokens, namespace)
        partial = () if match.partial is None else (match.partial,)
        cache._pool.hold((*match.pages, *partial))
        length = len(match.pages) * cache.page_size + match.num_partial
        cache._entries[sequence] = Entry(
            (*match.pages, *partial), length, namespace=namespace, num_published=len(match.pages)
        )
        return length

    patch.setattr(PagedCache, "adopt", defect)
    patch.setattr(PagedCache, "_protected_boundary_page", lambda *_: None)


def namespace_is_ignored(patch: pytest.MonkeyPatch) -> None:
    adopt = PagedCache.adopt
    patch.setattr(PagedCache, "adopt", lambda cache, sequence, tokens, _: adopt(cache, sequence, tokens, ""))


def limit_comes_before_stop(patch: pytest.MonkeyPatch) -> None:
    end = engine_commit._end

    def defect(state: SequenceState, outcome: Outcome) -> tuple[int, FinishReason | None, object]:
        num, reason, stop = end(state, outcome)
        is_full = state.num_output + num == state.max_tokens
        return (num, FinishReason.LENGTH, None) if is_full else (num, reason, stop)

    patch.setattr(engine_commit, "_end", defect)


def trimmed_tokens_are_told(patch: pytest.MonkeyPatch) -> None:
    """Proposers hear all that was accepted, before the scan for an end."""

    def defect(state: SequenceState, outcome: Outcome) -> tuple[int, FinishReason | None, object]:
        num = min(len(outcome.tokens), state.max_tokens - state.num_output)
        return num, FinishReason.LENGTH if num == state.max_tokens - state.num_output else None, None

    patch.setattr(engine_commit, "_end", defect)


def draft_cache_commits_a_row_too_many(patch: pytest.MonkeyPatch) -> None:
    commit = CacheCoordinator.commit

    def defect(
        cache: CacheCoordinator, sequence: int, path: Sequence[int], num_known: int, accepted: Sequence[int]
    ) -> None:
        reserved = {name: draft.cache.num_reserved(sequence) for name, draft in cache._drafts.items()}
        seen = {name: draft.cache.length(sequence) for name, draft in cache._drafts.items()}
        commit(cache, sequence, path, num_known, accepted)
        for name, draft in cache._drafts.items():
            num_new = draft.cache.length(sequence) - seen[name]
            if num_new and reserved[name] > num_new:
                draft.cache._entries[sequence].length += 1  # type: ignore[attr-defined]

    patch.setattr(CacheCoordinator, "commit", defect)


def finished_sequence_stays_with_proposers(patch: pytest.MonkeyPatch) -> None:
    def defect(roster: Roster, sequence: int) -> None:
        if roster._scheduler.remove(sequence):
            roster.finish_counts[FinishReason.ABORT] += 1
        roster._cache.release(sequence)

    patch.setattr(Roster, "end", defect)


def pages_of_a_withdrawn_sequence_are_lost(patch: pytest.MonkeyPatch) -> None:
    def defect(pool: PagePool, pages: Sequence[int]) -> None:
        for page in pages:
            pool.counts[page] -= 1

    patch.setattr(PagePool, "drop", defect)


def preempted_sequence_starts_over(patch: pytest.MonkeyPatch) -> None:
    """What it has emitted is forgotten, and emitted again."""
    preempt = Scheduler.preempt

    def defect(scheduler: Scheduler, sequence: int) -> None:
        preempt(scheduler, sequence)
        state = scheduler.find(sequence)
        if state is not None and not state.is_running:
            del state.tokens[state.num_prompt :]

    patch.setattr(Scheduler, "preempt", defect)


def held_sequence_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "_set_held", lambda *_: None)


def waiting_for_each_other(patch: pytest.MonkeyPatch) -> None:
    """Nobody gives way where pages have run out."""
    patch.setattr(Scheduler, "_keep_room", lambda _: None)
