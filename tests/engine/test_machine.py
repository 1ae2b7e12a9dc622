"""Random requests, steps, withdrawals, preemptions and interrupts: everybody gets the right answer.

`engine_world` holds the moves and what is checked after each. The checks are checked too: with a defect of
`engine_defects` planted, the same walks must notice it.
"""

from collections.abc import Callable
from random import Random

import engine_defects as defects
import pytest
from engine_walk import random_request, walk
from engine_world import DRAFTING, MOMENTS, Setup, World
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from paceline.cache import IntegrityError, OutOfPagesError
from paceline.engine import FinishReason

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
        walk(world, Random(setup.seed), 150)
        shortages += world.num_shortages
        steps = [step for record in world.records for step in record.sequences]
        accepted += sum(step.accepted for step in steps)
        rejected += sum(step.drafted - step.accepted for step in steps)
        discarded += sum(step.discarded for step in steps)
        reasons |= {asked.finish_reason for asked in world.asked.values()}
    assert min(shortages, accepted, rejected, discarded) >= 20, (shortages, accepted, rejected, discarded)
    assert reasons == {FinishReason.STOP, FinishReason.LENGTH, FinishReason.ABORT}


NOTICED = (AssertionError, IntegrityError, LookupError, ValueError, RuntimeError, OutOfPagesError)


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (defects.uncommitted_row_is_published, "published"),
        (defects.rejected_row_stays_in_place, "sees token|says|ends as"),
        (defects.late_result_is_handed_out, "a late result"),
        (defects.preemption_in_the_middle_of_a_step, "^[0-9]+$"),
        (defects.shared_page_is_written, "may write to page"),
        (defects.namespace_is_ignored, "sees a slot of"),
        (defects.limit_comes_before_stop, "ends as"),
        (defects.trimmed_tokens_are_told, "goes on behind|ends as|says"),
        (defects.draft_cache_commits_a_row_too_many, "positions of sequence|draft model"),
        (defects.finished_sequence_stays_with_proposers, "follows"),
        (defects.pages_of_a_withdrawn_sequence_are_lost, "free pages are"),
        (defects.preempted_sequence_starts_over, "has got"),
        (defects.held_sequence_goes_on, "is held and got"),
        (defects.waiting_for_each_other, "room=-1|pages are needed"),
    ],
)
def test_planted_defect_is_noticed(plant: defects.Plant, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(NOTICED, match=found):
        walk_all()
