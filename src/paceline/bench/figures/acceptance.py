"""What was drafted and what stood."""

from collections.abc import Iterable
from dataclasses import dataclass

from paceline.bench.base import Block, Counts
from paceline.bench.figures.sums import good_answers
from paceline.bench.statistics import ratio


def total_counts(blocks: Iterable[Block]) -> Counts:
    """Of whole blocks where the target tells that, else of the answers that tell it."""
    total = Counts()
    for block in blocks:
        if block.counts is not None:
            total += block.counts
            continue
        for answer in good_answers([block]):
            if answer.counts is not None:
                total += answer.counts
    return total


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Figures as `Run` documents them."""

    mean_acceptance_length: float | None
    draft_acceptance_rate: float | None
    acceptance_by_position: tuple[float, ...]
    num_draft_tokens_chosen: dict[str, float]

    @classmethod
    def of(cls, counts: Counts) -> "Acceptance":
        steps = sum(counts.drafted.values())
        return cls(
            ratio(counts.num_emitted, counts.num_target_steps),
            ratio(counts.num_accepted_tokens, counts.num_draft_tokens),
            tuple(stood / counts.num_drafts for stood in counts.per_position) if counts.num_drafts else (),
            {str(k): counts.drafted[k] / steps for k in sorted(counts.drafted)},
        )
