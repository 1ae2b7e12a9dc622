"""Exact speculative decoding for large language models: the same text as plain decoding, sooner.

>>> from paceline import LLM, SamplingParams
>>> llm = LLM("smollm2", speculation="ngram")
>>> [answer] = llm.chat([{"role": "user", "content": "Name three rivers."}], SamplingParams(max_tokens=64))
>>> print(answer.text, answer.speculation.mean_acceptance_length)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.api import (
        LLM,
        AsyncLLM,
        AsyncStream,
        Piece,
        RequestOutput,
        Speculation,
        SpeculationSummary,
        Stream,
        Timing,
        TokenLogprobs,
        Usage,
    )
    from paceline.errors import (
        EngineDeadError,
        FetchError,
        ModelFormatError,
        ModelNotFoundError,
        PacelineError,
        UnsupportedModelError,
        UsageError,
    )
    from paceline.sampling_params import SamplingParams

    __version__: str

__all__ = [
    "LLM",
    "AsyncLLM",
    "AsyncStream",
    "EngineDeadError",
    "FetchError",
    "ModelFormatError",
    "ModelNotFoundError",
    "PacelineError",
    "Piece",
    "RequestOutput",
    "SamplingParams",
    "Speculation",
    "SpeculationSummary",
    "Stream",
    "Timing",
    "TokenLogprobs",
    "UnsupportedModelError",
    "Usage",
    "UsageError",
    "__version__",
]

_ERRORS = {name for name in __all__ if name.endswith("Error")}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import paceline` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'paceline' has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import version

        return version("paceline")
    if name in _ERRORS:
        home = "paceline.errors"
    elif name == "SamplingParams":
        home = "paceline.sampling_params"
    else:
        home = "paceline.api"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
