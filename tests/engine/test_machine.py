"""Random requests, steps, withdrawals, preemptions and interrupts: everybody gets the right answer.

`engine_world` holds the moves and what is checked after each. The checks are checked too: with a defect planted,
the same walks must notice it.
"""

from collections.abc import Callable, Sequence
from random import Random

import pytest
from engine_world import DRAFTING, MOMENTS, Setup, World, random_request, walk
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from paceline.acceptance import Outcome
from paceline.cache import CacheCoordinator, IntegrityError, OutOfPagesError, PagedCache
from paceline.cache.entry import Entry
from paceline.cache.pool import PagePool
from paceline.engine import Engine, FinishReason, SequenceState
from paceline.engine import commit as engine_commit
from paceline.engine.roster import Roster
from paceline.engine.scheduler import Scheduler
from paceline.engine.turn import Turn
from paceline.testing import TableModel

RANDOMS = st.randoms(use_true_random=False)
PICKS = st.integers(0, 7)
SETUPS = st.builds(
    Setup,
    seed=st.integers(0, 999),
    vocab_size=st.integers(3, 6),
    order=st.sampled_from((1, 2, 3, None)),
    page_size=st.integers(2, 5),
    num_pages=st.integers(5, 12),
    max_num_seqs=st.integers(1, 6),
    prefill_chunk=st.integers(1, 8),
    mixed_prefill_chunk=st.integers(1, 4),
    max_draft_tokens=st.sampled_from((0, 2, 5, None)),
    reuses_prefixes=st.sampled_from((True, True, True, False)),
    drafting=st.sampled_from(DRAFTING),
    share_right=st.sampled_from((0.0, 0.5, 0.9, 1.0)),
    draft_length=st.sampled_from((6, 15, 24)),
)


class EngineMachine(RuleBasedStateMachine):
    world: World

    def __init__(self) -> None:
        super().__init__()
        self.is_over = True  # nothing was begun, or something was found

    @initialize(setup=SETUPS)
    def begin(self, setup: Setup) -> None:
        self.world = World(setup)
        self.is_over = False

    def move(self, action: Callable[[], object]) -> None:
        self.is_over = True
        action()
        self.is_over = False

    def pick(self, number: int) -> int:
        unfinished = self.world.unfinished
        return unfinished[number % len(unfinished)]

    def has_unfinished(self) -> bool:
        return bool(self.world.unfinished)

    @rule(random=RANDOMS, num=st.integers(1, 3))
    def add(self, random: Random, num: int) -> None:
        for _ in range(num):
            self.move(lambda: self.world.add(random_request(self.world, random)))

    @rule(num=st.integers(1, 6))
    def steps(self, num: int) -> None:
        for _ in range(num):
            self.move(self.world.step)

    @precondition(has_unfinished)
    @rule(number=PICKS, moment=st.sampled_from(MOMENTS), what=st.sampled_from(("abort", "preempt", "interrupt")))
    def strike(self, number: int, moment: str, what: str) -> None:
        self.move(lambda: self.world.step(moment, what, self.pick(number)))

    @precondition(has_unfinished)
    @rule(number=PICKS)
    def abort(self, number: int) -> None:
        self.move(lambda: self.world.abort(self.pick(number)))

    @precondition(has_unfinished)
    @rule(number=PICKS)
    def preempt(self, number: int) -> None:
        self.move(lambda: self.world.preempt(self.pick(number)))

    @precondition(has_unfinished)
    @rule(number=PICKS)
    def hold_or_resume(self, number: int) -> None:
        sequence = self.pick(number)
        self.move(lambda: self.world.set_held(sequence, not self.world.asked[sequence].is_held))

    def teardown(self) -> None:
        if not self.is_over:
            self.world.drain()


TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


WALKS = tuple(
    Setup(
        seed=seed,
        page_size=2 + seed % 4,
        num_pages=(14, 10, 8, 6)[seed % 4],
        max_draft_tokens=(1, 5)[seed % 2],
        share_right=(0.95, 0.7)[seed % 2],
        drafting=("any", "scripted", "table")[seed % 3],
        draft_length=(15, 24)[seed % 2],
    )
    for seed in range(16)
)


def walk_all() -> None:
    for setup in WALKS:
        walk(World(setup), Random(setup.seed), 60)


def test_walks_without_a_defect_go_through() -> None:
    walk_all()


def test_walks_meet_what_they_are_for() -> None:
    """Shortage, reuse, acceptance, rejection, discarded tokens and every way to end."""
    shortages = accepted = rejected = discarded = 0
    reasons = set[FinishReason | None]()
    for setup in WALKS:
        world = World(setup)
        walk(world, Random(setup.seed), 100)
        shortages += world.num_shortages
        steps = [step for record in world.records for step in record.sequences]
        accepted += sum(step.accepted for step in steps)
        rejected += sum(step.drafted - step.accepted for step in steps)
        discarded += sum(step.discarded for step in steps)
        reasons |= {asked.finish_reason for asked in world.asked.values()}
    assert min(shortages, accepted, rejected, discarded) >= 20, (shortages, accepted, rejected, discarded)
    assert reasons == {FinishReason.STOP, FinishReason.LENGTH, FinishReason.ABORT}


NOTICED = (AssertionError, IntegrityError, LookupError, ValueError, RuntimeError, OutOfPagesError)
Plant = Callable[[pytest.MonkeyPatch], None]


def plant_uncommitted_row_is_published(patch: pytest.MonkeyPatch) -> None:
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


def plant_rejected_row_stays_in_place(patch: pytest.MonkeyPatch) -> None:
    """A tree's accepted path is not moved."""
    patch.setattr(TableModel, "copy_slots", lambda *_: None)


def plant_late_result_is_handed_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Turn, "noted", lambda _: set())


def plant_preemption_in_the_middle_of_a_step(patch: pytest.MonkeyPatch) -> None:
    def defect(engine: Engine, sequence: int) -> None:
        engine._scheduler.preempt(sequence)

    patch.setattr(Engine, "preempt", defect)


def plant_shared_page_is_written(patch: pytest.MonkeyPatch) -> None:
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


def plant_namespace_is_ignored(patch: pytest.MonkeyPatch) -> None:
    adopt = PagedCache.adopt
    patch.setattr(PagedCache, "adopt", lambda cache, sequence, tokens, _: adopt(cache, sequence, tokens, ""))


def plant_limit_comes_before_stop(patch: pytest.MonkeyPatch) -> None:
    end = engine_commit._end

    def defect(state: SequenceState, outcome: Outcome) -> tuple[int, FinishReason | None, object]:
        num, reason, stop = end(state, outcome)
        is_full = state.num_output + num == state.max_tokens
        return (num, FinishReason.LENGTH, None) if is_full else (num, reason, stop)

    patch.setattr(engine_commit, "_end", defect)


def plant_trimmed_tokens_are_told(patch: pytest.MonkeyPatch) -> None:
    """Proposers hear all that was accepted, before the scan for an end."""

    def defect(state: SequenceState, outcome: Outcome) -> tuple[int, FinishReason | None, object]:
        num = min(len(outcome.tokens), state.max_tokens - state.num_output)
        return num, FinishReason.LENGTH if num == state.max_tokens - state.num_output else None, None

    patch.setattr(engine_commit, "_end", defect)


def plant_draft_cache_commits_a_row_too_many(patch: pytest.MonkeyPatch) -> None:
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


def plant_finished_sequence_stays_with_proposers(patch: pytest.MonkeyPatch) -> None:
    def defect(roster: Roster, sequence: int) -> None:
        if roster._scheduler.remove(sequence):
            roster.finish_counts[FinishReason.ABORT] += 1
        roster._cache.release(sequence)

    patch.setattr(Roster, "end", defect)


def plant_pages_of_a_withdrawn_sequence_are_lost(patch: pytest.MonkeyPatch) -> None:
    def defect(pool: PagePool, pages: Sequence[int]) -> None:
        for page in pages:
            pool.counts[page] -= 1

    patch.setattr(PagePool, "drop", defect)


def plant_preempted_sequence_starts_over(patch: pytest.MonkeyPatch) -> None:
    """What it has emitted is forgotten, and emitted again."""
    preempt = Scheduler.preempt

    def defect(scheduler: Scheduler, sequence: int) -> None:
        preempt(scheduler, sequence)
        state = scheduler.find(sequence)
        if state is not None and not state.is_running:
            del state.tokens[state.num_prompt :]

    patch.setattr(Scheduler, "preempt", defect)


def plant_held_sequence_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "_set_held", lambda *_: None)


def plant_waiting_for_each_other(patch: pytest.MonkeyPatch) -> None:
    """Nobody gives way where pages have run out."""
    patch.setattr(Scheduler, "_keep_room", lambda _: None)


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (plant_uncommitted_row_is_published, "published"),
        (plant_rejected_row_stays_in_place, "sees token|says|ends as"),
        (plant_late_result_is_handed_out, "a late result"),
        (plant_preemption_in_the_middle_of_a_step, "^[0-9]+$"),
        (plant_shared_page_is_written, "may write to page"),
        (plant_namespace_is_ignored, "sees a slot of"),
        (plant_limit_comes_before_stop, "ends as"),
        (plant_trimmed_tokens_are_told, "goes on behind|ends as|says"),
        (plant_draft_cache_commits_a_row_too_many, "positions of sequence|draft model"),
        (plant_finished_sequence_stays_with_proposers, "follows"),
        (plant_pages_of_a_withdrawn_sequence_are_lost, "free pages are"),
        (plant_preempted_sequence_starts_over, "has got"),
        (plant_held_sequence_goes_on, "is held and got"),
        (plant_waiting_for_each_other, "room=-1|pages are needed"),
    ],
)
def test_planted_defect_is_noticed(plant: Plant, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(NOTICED, match=found):
        walk_all()
