"""A controller that decides what it is told to: the outputs of an engine must not depend on it."""

from collections.abc import Callable, Iterable, Sequence

from paceline.controller.base import Controller, Plan, PlanEntry, SequenceView
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

    def plan(self, sequences: Sequence[SequenceView]) -> Plan:
        return Plan(tuple(self._entry(view) for view in sequences))

    def observe(self, record: StepRecord) -> None:
        self.records.append(record)

    def _entry(self, view: SequenceView) -> PlanEntry:
        num_tokens = min(self._next(view), view.room)
        return PlanEntry(view.sequence, self._proposer if num_tokens else OFF, num_tokens, Reason.SCRIPTED)


def _drawn_from(lengths: Iterable[int]) -> Callable[[SequenceView], int]:
    iterator = iter(lengths)

    def draw(view: SequenceView) -> int:
        for length in iterator:
            return length
        raise RuntimeError(f"the script has no length left for sequence {view.sequence}")

    return draw
