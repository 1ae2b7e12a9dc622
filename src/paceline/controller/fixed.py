"""The two controllers that do not learn: none at all, and always the same number of draft tokens."""

from collections.abc import Sequence
from typing import Final

from paceline.controller.base import Controller, Plan, PlanEntry, SequenceView
from paceline.errors import UsageError
from paceline.telemetry.base import Reason, StepRecord

OFF: Final = "off"


class OffController(Controller):
    """Plain decoding for every sequence; overrides by request do not turn speculation on."""

    def plan(self, sequences: Sequence[SequenceView]) -> Plan:
        return Plan(tuple(PlanEntry(view.sequence, OFF, 0, Reason.OFF) for view in sequences))

    def observe(self, record: StepRecord) -> None:
        pass


class FixedController(Controller):
    """Always `num_speculative_tokens` from `proposer`, or what a request asks for instead, as far as there is room."""

    def __init__(self, proposer: str, num_speculative_tokens: int) -> None:
        is_integer = isinstance(num_speculative_tokens, int) and not isinstance(num_speculative_tokens, bool)
        if not is_integer or num_speculative_tokens < 1:
            raise UsageError(
                f"num_speculative_tokens is {num_speculative_tokens!r}; expected an integer of at least 1, "
                "or the controller 'off'"
            )
        self._proposer = proposer
        self._num_tokens = num_speculative_tokens

    def plan(self, sequences: Sequence[SequenceView]) -> Plan:
        return Plan(tuple(self._entry(view) for view in sequences))

    def observe(self, record: StepRecord) -> None:
        pass

    def _entry(self, view: SequenceView) -> PlanEntry:
        override = view.num_speculative_tokens
        wanted = self._num_tokens if override is None else override
        if wanted == 0:
            return PlanEntry(view.sequence, OFF, 0, Reason.OFF)
        if wanted > view.room:
            return PlanEntry(view.sequence, self._proposer if view.room else OFF, view.room, Reason.LIMIT)
        return PlanEntry(view.sequence, self._proposer, wanted, Reason.FIXED)
