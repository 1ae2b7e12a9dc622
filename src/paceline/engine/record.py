"""One step's StepRecord, and the clock that its times come from."""

from collections.abc import Sequence
from time import perf_counter_ns

from paceline.controller.base import Plan, PlanEntry
from paceline.controller.fixed import OFF
from paceline.engine.batch import Drafts
from paceline.engine.commit import Commit
from paceline.telemetry.base import Reason, SequenceStep, StepRecord


class Lap:
    """A part of a step, timed by `with`."""

    def __init__(self) -> None:
        self.ns = 0
        self._started = 0

    def __enter__(self) -> None:
        self._started = perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        self.ns += perf_counter_ns() - self._started


class StepClock:
    """Draft and verification time, and the rest of the step since the clock was made: host time."""

    def __init__(self) -> None:
        self._started = perf_counter_ns()
        self.draft = Lap()
        self.verify = Lap()

    def host_ns(self) -> int:
        return perf_counter_ns() - self._started - self.draft.ns - self.verify.ns


def build_record(step: int, plan: Plan, drafts: Drafts, commits: Sequence[Commit], clock: StepClock) -> StepRecord:
    entries = {entry.sequence: entry for entry in plan.entries}
    sequences, num_rows, num_prefill_rows, num_draft_rows = list[SequenceStep](), 0, 0, 0
    for commit in commits:
        sequence = _sequence_step(commit, entries, drafts)
        sequences.append(sequence)
        num_draft_rows += sequence.drafted
        num_rows += commit.entry.num_run
        num_prefill_rows += commit.entry.num_run if commit.entry.is_prefill else 0
    return StepRecord(
        step=step,
        num_prefill_rows=num_prefill_rows,
        num_decode_rows=num_rows - num_prefill_rows,
        num_draft_rows=num_draft_rows,
        draft_ns=clock.draft.ns,
        verify_ns=clock.verify.ns,
        host_ns=clock.host_ns(),
        sequences=tuple(sequences),
    )


def _sequence_step(commit: Commit, plan: dict[int, PlanEntry], drafts: Drafts) -> SequenceStep:
    sequence = commit.entry.state.id
    entry = plan.get(sequence) or PlanEntry(sequence, OFF, 0, Reason.PREFILL)
    draft = drafts.get(sequence)
    drafted = len(draft.tokens) if draft else 0
    return SequenceStep(
        sequence=sequence,
        proposer=entry.proposer,
        planned=entry.num_tokens,
        drafted=drafted,
        accepted=commit.num_accepted,
        emitted=len(commit.tokens),
        discarded=commit.num_discarded,
        reason=Reason.NO_MATCH if entry.num_tokens and not drafted else entry.reason,
        predicted_gain=entry.predicted_gain,
    )
