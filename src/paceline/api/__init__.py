"""The public API: a model that answers prompts, and the values that it returns."""

from paceline.api.async_llm import AsyncLLM
from paceline.api.async_stream import AsyncStream
from paceline.api.llm import LLM
from paceline.api.outputs import Piece, RequestOutput, SpeculationSummary, Timing, Usage
from paceline.api.speculation import Speculation
from paceline.api.stream import Stream
from paceline.engine import TokenLogprobs

__all__ = [
    "LLM",
    "AsyncLLM",
    "AsyncStream",
    "Piece",
    "RequestOutput",
    "Speculation",
    "SpeculationSummary",
    "Stream",
    "Timing",
    "TokenLogprobs",
    "Usage",
]
