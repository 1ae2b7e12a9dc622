"""The engine: requests in, tokens out, one verification step at a time."""

from paceline.engine.async_engine import AsyncEngine
from paceline.engine.engine import Engine
from paceline.engine.logprobs import TokenLogprobs
from paceline.engine.options import DEFAULT_MAX_NUM_SEQS, EngineOptions
from paceline.engine.output import FinishReason, OutputTimes, StepOutput
from paceline.engine.request import Request, SequenceState
from paceline.engine.stats import EngineStats
from paceline.engine.stops import StopMatch
from paceline.engine.token_stream import TokenStream
from paceline.engine.turn import IN_USE

__all__ = [
    "DEFAULT_MAX_NUM_SEQS",
    "IN_USE",
    "AsyncEngine",
    "Engine",
    "EngineOptions",
    "EngineStats",
    "FinishReason",
    "OutputTimes",
    "Request",
    "SequenceState",
    "StepOutput",
    "StopMatch",
    "TokenLogprobs",
    "TokenStream",
]
