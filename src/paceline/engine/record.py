"""One step's StepRecord, and the times that go into it."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter_ns

from paceline.controller.base import Plan, PlanEntry
from paceline.controller.fixed import OFF
from paceline.engine.batch import Drafts
from paceline.engine.commit import Commit
from paceline.telemetry.base import Reason, SequenceStep, StepRecord


@dataclass(slots=True)
class StepTimes:
    """When a step started, and how long it drafted and verified, in nanoseconds. The rest until now is host time."""

    started: int
    draft_ns: int
    verify_ns: int

    def host_ns(self) -> int:
        return perf_counter_ns() - self.started - self.draft_ns - self.verify_ns


def build_record(step: int, plan: Plan, drafts: Drafts, commits: Sequence[Commit], times: StepTimes) -> StepRecord:
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
        draft_ns=times.draft_ns,
        verify_ns=times.verify_ns,
        host_ns=times.host_ns(),
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
