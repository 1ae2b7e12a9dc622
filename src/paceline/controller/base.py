"""The contract of a controller: which proposer drafts for which sequence, and how many tokens.

Pure Python over figures: it sees no token, no runtime and no framework, so that every decision can be tested in
microseconds. Zero draft tokens is a choice like any other.
"""

from abc import ABC, abstractmethod

from paceline.telemetry.base import Reason, StepRecord
from paceline.value import value


@value
class SequenceView:
    """What a controller may know of a sequence that decodes in this step.

    `room` is the most draft tokens that could be of use and have room: what the token limit, the capacity and the free
    pages leave, minus the bonus token. `length` is the number of committed positions.
    """

    sequence: int
    length: int
    room: int
    namespace: str = ""
    task_class: str | None = None
    num_speculative_tokens: int | None = None


@value
class BatchView:
    """What a controller may know of a step. `sequences` are those that decode in it.

    `num_prefill_rows`: prompt rows that ride in the same forward. `max_draft_rows`: the draft tokens for which the
    forward has rows, over all sequences.
    """

    sequences: tuple[SequenceView, ...]
    num_prefill_rows: int
    max_draft_rows: int


@value
class PlanEntry:
    """The decision for one sequence. `proposer` is a registered name, or "off" together with `num_tokens == 0`."""

    sequence: int
    proposer: str
    num_tokens: int
    reason: Reason
    predicted_gain: float | None = None


@value
class Plan:
    entries: tuple[PlanEntry, ...] = ()


class Controller(ABC):
    @abstractmethod
    def plan(self, batch: BatchView) -> Plan:
        """One entry for each view, in order, with `0 <= num_tokens <= room`; together at most `max_draft_rows`."""

    @abstractmethod
    def observe(self, record: StepRecord) -> None:
        """Learn from a finished step."""
