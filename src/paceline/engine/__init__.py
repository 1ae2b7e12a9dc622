"""The engine: requests in, tokens out, one verification step at a time."""

from paceline.engine.engine import Engine
from paceline.engine.request import FinishReason, Request, SequenceState, StepOutput
from paceline.engine.scheduler import DEFAULT_PREFILL_CHUNK, MAX_NUM_SEQS
from paceline.engine.turn import IN_USE

__all__ = [
    "DEFAULT_PREFILL_CHUNK",
    "IN_USE",
    "MAX_NUM_SEQS",
    "Engine",
    "FinishReason",
    "Request",
    "SequenceState",
    "StepOutput",
]
