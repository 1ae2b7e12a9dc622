"""What a finished step has to tell: its StepRecord, the times that go into it, and an output for each sequence."""

from collections.abc import Sequence
from time import perf_counter, perf_counter_ns

from paceline.controller.base import Plan, PlanEntry
from paceline.controller.fixed import OFF
from paceline.engine.batch import Batch, Drafts
from paceline.engine.commit import Commit
from paceline.engine.output import OutputTimes, StepOutput
from paceline.telemetry.base import Reason, SequenceStep, StepRecord


class StepClock:
    """How long a step drafts and verifies, in nanoseconds; the rest of its time is the host's."""

    __slots__ = ("_began", "_started", "draft_ns", "verify_ns")

    def __init__(self) -> None:
        self._started = self._began = perf_counter_ns()
        self.draft_ns = self.verify_ns = 0

    def begin_draft(self) -> None:
        self._began = perf_counter_ns()

    def end_draft(self) -> None:
        self.draft_ns = perf_counter_ns() - self._began

    def begin_verify(self) -> None:
        self._began = perf_counter_ns()

    def end_verify(self) -> None:
        self.verify_ns = perf_counter_ns() - self._began

    def host_ns(self) -> int:
        return perf_counter_ns() - self._started - self.draft_ns - self.verify_ns


def build_record(
    step: int, batch: Batch, plan: Plan, drafts: Drafts, commits: Sequence[Commit], clock: StepClock
) -> StepRecord:
    entries = {entry.sequence: entry for entry in plan.entries}
    return StepRecord(
        step=step,
        num_prefill_rows=batch.num_prefill_rows,
        num_decode_rows=batch.num_decode_rows,
        num_draft_rows=sum([len(draft.tokens) for draft in drafts.values()]),
        draft_ns=clock.draft_ns,
        verify_ns=clock.verify_ns,
        host_ns=clock.host_ns(),
        sequences=tuple([_sequence_step(commit, entries, drafts) for commit in commits]),
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
        prefilled=commit.entry.num_run if commit.entry.is_prefill else 0,
    )


def outputs_of(commits: Sequence[Commit], record: StepRecord) -> list[StepOutput]:
    """One for each commit that has something to tell; `record` holds the same sequences in the same order."""
    now = perf_counter()
    return [
        _output(commit, step, now)
        for commit, step in zip(commits, record.sequences, strict=True)
        if commit.tokens or commit.finish_reason or commit.prompt_logprobs
    ]


def _output(commit: Commit, step: SequenceStep, now: float) -> StepOutput:
    state = commit.entry.state
    num_own = len(commit.tokens) - commit.num_draft
    return StepOutput(
        sequence=state.id,
        tokens=commit.tokens,
        is_draft=(True,) * commit.num_draft + (False,) * num_own,
        finish_reason=commit.finish_reason,
        stop=commit.stop,
        error=commit.error,
        step=step,
        times=OutputTimes(state.arrived, state.started if state.started is not None else now, now),
        num_reused=state.num_reused,
        logprobs=commit.logprobs,
        prompt_logprobs=commit.prompt_logprobs,
    )
