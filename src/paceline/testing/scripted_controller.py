"""A controller that decides what it is told to: the outputs of an engine must not depend on it."""

from collections.abc import Callable, Iterable

from paceline.controller.base import BatchView, Controller, Plan, PlanEntry, SequenceView
from paceline.controller.fixed import OFF
from paceline.telemetry.base import Reason, StepRecord


class ScriptedController(Controller):
    """`lengths` yields the number of draft tokens for every sequence of every step, or computes it from its view.

    More than there is room for is cut. An iterable that runs out raises RuntimeError. `records` keeps what was
    observed.
    """

    def __init__(self, proposer: str, lengths: Iterable[int] | Callable[[SequenceView], int]) -> None:
        self._proposer = proposer
        self._next: Callable[[SequenceView], int] = lengths if callable(lengths) else _drawn_from(lengths)
        self.records: list[StepRecord] = []

    def plan(self, batch: BatchView) -> Plan:
        entries, num_left = list[PlanEntry](), batch.max_draft_rows
        for view in batch.sequences:
            num_tokens = min(self._next(view), view.room, num_left)
            num_left -= num_tokens
            proposer = self._proposer if num_tokens else OFF
            entries.append(PlanEntry(view.sequence, proposer, num_tokens, Reason.SCRIPTED))
        return Plan(tuple(entries))

    def observe(self, record: StepRecord) -> None:
        self.records.append(record)


def _drawn_from(lengths: Iterable[int]) -> Callable[[SequenceView], int]:
    iterator = iter(lengths)

    def draw(view: SequenceView) -> int:
        for length in iterator:
            return length
        raise RuntimeError(f"the script has no length left for sequence {view.sequence}")

    return draw
