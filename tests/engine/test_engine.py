"""The life of requests in an engine: order, abort, interrupts, records and broken parts."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from paceline.acceptance import MatchRule, Outcome, Verification
from paceline.cache import IntegrityError
from paceline.controller import BatchView, Controller, FixedController, OffController, Plan, PlanEntry
from paceline.engine import Engine, EngineOptions, FinishReason, Request, StepOutput
from paceline.errors import UsageError
from paceline.proposers import Ask, Capabilities, Draft, NgramProposer, Proposer
from paceline.runtime import Scores, Segment
from paceline.sampling_params import SamplingParams
from paceline.telemetry import Reason, SequenceStep, SpeculationStats, StepRecord
from paceline.testing import (
    ScriptedController,
    ScriptedDraft,
    ScriptedProposer,
    TableModel,
    decode_plainly,
    seeded_table,
)

RunOne = Callable[..., Any]  # see conftest.py

TABLE = seeded_table(3, seed=2)


def right(context: tuple[int, ...], num: int) -> ScriptedDraft:
    return ScriptedDraft(tuple(decode_plainly(TABLE, context, num)))


def engine_of(
    runtime: TableModel | None = None, prefill_chunk: int = 256, records: Callable[[StepRecord], None] | None = None
) -> Engine:
    controller, proposers = FixedController("scripted", 3), [ScriptedProposer(right)]
    options = EngineOptions(prefill_chunk=prefill_chunk)
    return Engine(runtime or TableModel(TABLE, 3), controller, proposers, MatchRule(), options=options, records=records)


def drain(engine: Engine) -> dict[int, list[int]]:
    tokens: dict[int, list[int]] = {}
    for _ in range(500):
        if not engine.has_unfinished:
            return tokens
        for output in engine.step():
            tokens.setdefault(output.sequence, []).extend(output.tokens)
        engine.check_integrity()
    raise AssertionError("the sequences do not end")


def test_first_come_first_served() -> None:
    engine, prompts = engine_of(), [(0, 1), (2,), (1, 1, 1, 2, 0)]
    ids = [engine.add_request(Request(prompt, SamplingParams(9))) for prompt in prompts]
    tokens = drain(engine)
    assert list(tokens) == ids
    assert list(tokens.values()) == [decode_plainly(TABLE, prompt, 9) for prompt in prompts]
    assert engine.stats().finish_counts == {FinishReason.LENGTH: 3}
    assert engine.step() == []


@pytest.mark.parametrize("num_steps", range(5))
def test_abort_at_any_time_frees_everything(num_steps: int) -> None:
    engine = engine_of(prefill_chunk=2)
    first = engine.add_request(Request((0, 1, 2, 0, 1), SamplingParams(20)))
    second = engine.add_request(Request((2, 2), SamplingParams(20)))
    third = engine.add_request(Request((2, 1), SamplingParams(20)))
    tokens: dict[int, list[int]] = {first: [], second: [], third: []}
    for _ in range(num_steps):
        for output in engine.step():
            tokens[output.sequence] += output.tokens
    assert engine.abort(first) == StepOutput(first, finish_reason=FinishReason.ABORT)
    assert engine.abort(second) == StepOutput(second, finish_reason=FinishReason.ABORT)
    engine.check_integrity()
    assert engine.sequences == [third]
    assert engine.abort(first) is None
    assert engine.abort(99) is None
    rest = drain(engine)
    assert tokens[third] + rest[third] == decode_plainly(TABLE, (2, 1), 20)
    assert engine.num_free_pages == 16
    assert engine.stats().finish_counts == {FinishReason.ABORT: 2, FinishReason.LENGTH: 1}


class Interrupted(TableModel):
    """Raises in chosen forwards, before or after the rows are written."""

    def __init__(self, when: dict[int, str]) -> None:
        super().__init__(TABLE, 3)
        self.when = when
        self.num_forwards = 0

    def forward(self, segments: Sequence[Segment]) -> Scores:
        moment = self.when.get(self.num_forwards)
        self.num_forwards += 1
        if moment == "before":
            raise KeyboardInterrupt
        scores = super().forward(segments)
        if moment == "after":
            raise KeyboardInterrupt
        return scores


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("forward", range(4))
def test_interrupted_step_can_be_aborted(forward: int, moment: str) -> None:
    engine = engine_of(Interrupted({forward: moment}), prefill_chunk=2)
    sequence = engine.add_request(Request((0, 1, 2), SamplingParams(20)))
    with pytest.raises(KeyboardInterrupt):
        drain(engine)
    engine.check_integrity()
    assert engine.abort(sequence) is not None
    engine.check_integrity()
    again = engine.add_request(Request((0, 1, 2), SamplingParams(9)))
    assert drain(engine)[again] == decode_plainly(TABLE, (0, 1, 2), 9)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_interrupted_step_can_be_tried_again(moment: str) -> None:
    random = Random(3)
    engine = engine_of(Interrupted(dict.fromkeys(range(0, 40, random.randint(2, 3)), moment)), prefill_chunk=2)
    sequence, tokens = engine.add_request(Request((0, 1, 2), SamplingParams(20))), list[int]()
    while engine.has_unfinished:
        try:
            outputs = engine.step()
        except KeyboardInterrupt:
            engine.check_integrity()
            continue
        tokens += [token for output in outputs for token in output.tokens]
    assert tokens == decode_plainly(TABLE, (0, 1, 2), 20)
    assert engine.abort(sequence) is None


def test_integrity_check_notices_a_lost_token() -> None:
    engine = engine_of()
    engine.add_request(Request((0, 1), SamplingParams(20)))
    engine.step()
    engine.check_integrity()
    next(iter(engine._scheduler.running)).tokens.append(1)
    with pytest.raises(IntegrityError, match="4 tokens, 2 of them cached"):
        engine.check_integrity()


def test_records(run_one: RunOne) -> None:
    controller = ScriptedController("scripted", [0, 2, 3, 3])
    proposer = ScriptedProposer(lambda context, num: right(context, num) if len(context) < 8 else ScriptedDraft())
    run = run_one(TableModel(TABLE, 3), (0, 1, 2), SamplingParams(7), controller, [proposer], prefill_chunk=2)
    assert run.records == controller.records
    assert [record.step for record in run.records] == list(range(6))
    rows = [(record.num_prefill_rows, record.num_decode_rows, record.num_draft_rows) for record in run.records]
    assert rows == [(2, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, 2), (0, 1, 0), (0, 1, 0)]
    steps = [record.sequences[0] for record in run.records]
    assert [step.reason for step in steps] == [
        Reason.PREFILL,
        Reason.PREFILL,
        Reason.SCRIPTED,
        Reason.SCRIPTED,
        Reason.NO_MATCH,
        Reason.SCRIPTED,
    ]
    assert [step.emitted for step in steps] == [0, 1, 1, 3, 1, 1]
    assert all(record.verify_ns > 0 and record.host_ns > 0 and record.draft_ns >= 0 for record in run.records)
    for step in steps[1:]:
        assert step.planned >= step.drafted >= step.accepted
        assert step.emitted + step.discarded == step.accepted + 1


def test_request_chooses_its_own_draft_length() -> None:
    records = list[StepRecord]()
    engine = engine_of(records=records.append)
    for override in (0, 2, None):
        engine.add_request(Request((0, 1), SamplingParams(8), num_speculative_tokens=override))
    drain(engine)
    longest = [max(s.planned for r in records for s in r.sequences if s.sequence == i) for i in range(3)]
    assert longest == [0, 2, 3]


class Watching(MatchRule):
    """Keeps the shapes of the logits that it is given."""

    def __init__(self) -> None:
        self.shapes = set[tuple[int, ...]]()

    def accept(self, verification: Verification) -> Outcome:
        self.shapes.add(verification.logits.shape)
        return super().accept(verification)


def test_rules_never_see_padding() -> None:
    rule = Watching()
    controller = FixedController("scripted", 2)
    engine = Engine(TableModel(TABLE, 3, num_padding=4), controller, [ScriptedProposer(right)], rule)
    engine.add_request(Request((0, 1), SamplingParams(7)))
    drain(engine)
    assert rule.shapes == {(1, 3), (3, 3)}


class Needy(NgramProposer):
    capabilities = Capabilities(hidden_layers=(3,))


class TooMany(ScriptedProposer):
    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        return [Draft(ask.sequence, (0,) * (ask.num_tokens + 1), proposer="scripted") for ask in asks]


class WrongTree(ScriptedProposer):
    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        return [Draft(ask.sequence, (0, 1), (0, -1), proposer="scripted") for ask in asks]


class HalfTree(ScriptedProposer):
    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        return [Draft(ask.sequence, (0, 1), (-1,), proposer="scripted") for ask in asks]


class Overreaching(OffController):
    def plan(self, batch: BatchView) -> Plan:
        views = batch.sequences
        return Plan(tuple(PlanEntry(view.sequence, "scripted", view.room + 1, Reason.FIXED) for view in views))


@pytest.mark.parametrize(
    ("controller", "proposer", "error", "message"),
    [
        (FixedController("scripted", 3), TooMany([]), RuntimeError, "answered .* with 4 tokens"),
        (FixedController("scripted", 3), WrongTree([]), ValueError, "names parent 0"),
        (FixedController("scripted", 3), HalfTree([]), RuntimeError, "1 parents for 2 tokens"),
        (Overreaching(), ScriptedProposer([]), RuntimeError, "does not answer"),
        (FixedController("other", 3), ScriptedProposer([]), UsageError, "chose the proposer 'other'; this engine has"),
    ],
)
def test_broken_parts_are_named(
    controller: Controller, proposer: Proposer, error: type[Exception], message: str
) -> None:
    engine = Engine(TableModel(TABLE, 3), controller, [proposer], MatchRule())
    sequence = engine.add_request(Request((0, 1)))
    with pytest.raises(error, match=message):
        drain(engine)
    engine.abort(sequence)
    engine.check_integrity()


def test_unserved_proposers_are_refused() -> None:
    for proposers, message in (([Needy()], "needs evidence"), ([NgramProposer(), NgramProposer()], "taken")):
        with pytest.raises(UsageError, match=message):
            Engine(TableModel(TABLE, 3), OffController(), proposers, MatchRule())
    with pytest.raises(UsageError, match="prefill_chunk is 0"):
        engine_of(prefill_chunk=0)


def step_of(**figures: int) -> SequenceStep:
    values = {"planned": 4, "drafted": 4, "accepted": 2, "emitted": 3, "discarded": 0} | figures
    return SequenceStep(0, "ngram", reason=Reason.FIXED, **values)


def test_stats_of_nothing_are_none() -> None:
    stats = SpeculationStats()
    assert stats.mean_acceptance_length is None
    assert stats.draft_acceptance_rate is None
    stats.add_sequence(step_of(planned=0, drafted=0, accepted=0, emitted=1))
    assert stats.mean_acceptance_length == 1.0
    assert stats.draft_acceptance_rate is None


def test_stats_count_what_reached_the_caller() -> None:
    stats = SpeculationStats()
    stats.add_sequence(step_of())
    stats.add_sequence(step_of(accepted=4, emitted=2, discarded=3))
    stats.add_sequence(step_of(accepted=0, emitted=1))
    stats.add_sequence(SequenceStep(0, "off", 0, 0, 0, 1, 0, Reason.PREFILL))
    assert (stats.num_target_steps, stats.num_emitted, stats.mean_acceptance_length) == (3, 6, 2.0)
    assert (stats.num_drafts, stats.num_draft_tokens, stats.num_accepted_tokens) == (3, 12, 4)
    assert stats.per_position == [2, 2]
    assert stats.draft_acceptance_rate == 4 / 12


@pytest.mark.parametrize("field", [{"prediction": (1, 2)}, {"deadline": 0.5}])
def test_fields_that_nothing_acts_on_are_refused(field: dict[str, object]) -> None:
    engine = engine_of()
    with pytest.raises(UsageError, match=next(iter(field))):
        engine.add_request(Request([1, 2], **field))  # type: ignore[arg-type]
    assert not engine.has_unfinished


def test_a_finish_that_fails_while_deferred_blocks_nobody() -> None:
    """The withdrawal was noted during a step; its failure is reported once, and the next calls work."""

    class Fragile(ScriptedProposer):
        num_failures = 1

        def finish(self, sequence: int) -> None:
            super().finish(sequence)
            if self.num_failures:
                self.num_failures -= 1
                raise ValueError("finish fails once")

    engine: Engine
    withdrawn: list[int] = []

    def withdraw(record: StepRecord) -> None:
        for step in record.sequences:
            if step.reason is not Reason.PREFILL and not withdrawn:
                withdrawn.append(step.sequence)
                assert engine.abort(step.sequence) is None

    engine = Engine(
        TableModel(TABLE, 3), FixedController("scripted", 3), [Fragile(right)], MatchRule(), records=withdraw
    )
    engine.add_request(Request([1, 2], SamplingParams(max_tokens=40)))
    with pytest.raises(ValueError, match="finish fails once"):
        drain(engine)
    assert withdrawn
    second = engine.add_request(Request([1, 2], SamplingParams(max_tokens=5)))
    assert drain(engine) == {second: list(decode_plainly(TABLE, (1, 2), 5))}
    engine.check_integrity()
