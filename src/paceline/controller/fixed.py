"""The two controllers that do not learn: none at all, and always the same number of draft tokens."""

from typing import Final

from paceline.controller.base import BatchView, Controller, Plan, PlanEntry, SequenceView
from paceline.errors import UsageError
from paceline.telemetry.base import Reason, StepRecord

OFF: Final = "off"


class OffController(Controller):
    """Plain decoding for every sequence; overrides by request do not turn speculation on."""

    def plan(self, batch: BatchView) -> Plan:
        return Plan(tuple([PlanEntry(view.sequence, OFF, 0, Reason.OFF) for view in batch.sequences]))

    def observe(self, record: StepRecord) -> None:
        pass


class FixedController(Controller):
    """Always `num_speculative_tokens` from `proposer`, or what a request asks for instead, as far as there is room.

    Where the step has too few rows, every sequence gets an equal share of them, and what one leaves goes to those
    behind it.
    """

    def __init__(self, proposer: str, num_speculative_tokens: int) -> None:
        is_integer = isinstance(num_speculative_tokens, int) and not isinstance(num_speculative_tokens, bool)
        if not is_integer or num_speculative_tokens < 1:
            raise UsageError(
                f"num_speculative_tokens is {num_speculative_tokens!r}; expected an integer of at least 1, "
                "or the controller 'off'"
            )
        self._proposer = proposer
        self._num_tokens = num_speculative_tokens

    def plan(self, batch: BatchView) -> Plan:
        entries, num_left = list[PlanEntry](), batch.max_draft_rows
        for num_done, view in enumerate(batch.sequences):
            entry = self._entry(view, num_left // (len(batch.sequences) - num_done))
            num_left -= entry.num_tokens
            entries.append(entry)
        return Plan(tuple(entries))

    def observe(self, record: StepRecord) -> None:
        pass

    def _entry(self, view: SequenceView, share: int) -> PlanEntry:
        override = view.num_speculative_tokens
        wanted = self._num_tokens if override is None else override
        if wanted == 0:
            return PlanEntry(view.sequence, OFF, 0, Reason.OFF)
        room = min(view.room, share)
        if wanted > room:
            return PlanEntry(view.sequence, self._proposer if room else OFF, room, Reason.LIMIT)
        return PlanEntry(view.sequence, self._proposer, wanted, Reason.FIXED)
