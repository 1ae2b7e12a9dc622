"""StepRecord, version 1: the one account of an engine step, read by controller, metrics, traces and benchmarks alike.

Figures only. No token, text or namespace is in it.
"""

from enum import StrEnum
from typing import ClassVar

from paceline.value import value


class Reason(StrEnum):
    """Why a sequence got the number of draft tokens that it got."""

    PREFILL = "prefill"  # its prompt is still being read
    OFF = "off"  # speculation is switched off
    FIXED = "fixed"  # a fixed draft length was configured
    NO_MATCH = "no_match"  # the proposer had nothing to say
    LIMIT = "limit"  # the token limit or the capacity leaves less room than planned
    SCRIPTED = "scripted"  # a test prescribed it


@value
class SequenceStep:
    """One sequence's part in a step.

    planned ≥ drafted ≥ accepted, and emitted + discarded = accepted + 1 for a step that sampled: discarded counts the
    tokens that a stop or a limit trimmed. Where the logits behind the last accepted token are not finite, they decide
    none, and the sum is one less. `prefilled` counts the rows of its prompt, or of what a preemption made it compute
    again. Gains are tokens per second relative to plain decoding (1.0 = no gain), None
    where the controller made no prediction or nothing was measured.
    """

    sequence: int
    proposer: str
    planned: int
    drafted: int
    accepted: int
    emitted: int
    discarded: int
    reason: Reason
    predicted_gain: float | None = None
    realised_gain: float | None = None
    prefilled: int = 0


@value
class StepRecord:
    """One engine step. Rows count what the forward computed, also for a sequence that was withdrawn meanwhile and is
    not among `sequences`. Times are wall-clock nanoseconds; host time is whatever is neither draft nor verify time."""

    version: ClassVar[int] = 1

    step: int
    num_prefill_rows: int
    num_decode_rows: int
    num_draft_rows: int
    draft_ns: int
    verify_ns: int
    host_ns: int
    sequences: tuple[SequenceStep, ...]
