"""Speculation in figures, summed over steps. Names as in vLLM's metrics; the definitions below are this project's."""

from dataclasses import dataclass, field

from paceline.telemetry.base import Reason, SequenceStep, StepRecord


@dataclass(slots=True)
class SpeculationStats:
    """Sums over decode steps; prefill, the first token that it yields included, is left out.

    Only what reached the caller counts: a token behind a stop or a limit was trimmed, and counts neither as emitted nor
    as accepted, although the target agreed with it. It does count as drafted, because it was paid for. So τ never
    exceeds the tokens that the caller received divided by the forwards that they took.

    `num_target_steps`: target forwards, counted once for each sequence that decoded in them. `num_drafts`: those that
    verified at least one draft token. `per_position[i]`: drafts of which at least i + 1 tokens stood, one behind the
    other; in a tree i is the depth.
    """

    num_target_steps: int = 0
    num_emitted: int = 0
    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    per_position: list[int] = field(default_factory=list)

    def add(self, record: StepRecord) -> None:
        for step in record.sequences:
            self.add_sequence(step)

    def add_sequence(self, step: SequenceStep) -> None:
        """Add one sequence's part in a step, for statistics of a single request."""
        if step.reason is Reason.PREFILL:
            return
        accepted = min(step.accepted, step.emitted)
        self.num_target_steps += 1
        self.num_emitted += step.emitted
        self.num_drafts += step.drafted > 0
        self.num_draft_tokens += step.drafted
        self.num_accepted_tokens += accepted
        while len(self.per_position) < accepted:
            self.per_position.append(0)
        for i in range(accepted):
            self.per_position[i] += 1

    @property
    def mean_acceptance_length(self) -> float | None:
        """τ: tokens emitted per target forward of a decoding sequence, the bonus token included; None without any."""
        return self.num_emitted / self.num_target_steps if self.num_target_steps else None

    @property
    def draft_acceptance_rate(self) -> float | None:
        """Accepted ÷ drafted tokens; None where nothing was drafted."""
        return self.num_accepted_tokens / self.num_draft_tokens if self.num_draft_tokens else None
