"""What a request returns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from paceline.engine import TokenLogprobs

FinishReasonName = Literal["stop", "length", "error", "abort"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of the prompt and of the answer. The token that ended the answer counts, though it has no text, and so do
    those of a stop string. `cached_tokens` of the prompt were in the cache, left there by an equal beginning.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall-clock seconds: in the queue until the request's first step, prefill from there to its first token, decoding
    from there to its last.

    `tokens_per_second` is that of decoding, the first token not counted; None where there was no second one.
    """

    prefill_seconds: float
    decode_seconds: float
    tokens_per_second: float | None
    queue_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """What one decode step checked: `num_draft_tokens` of `proposer`, "off" for none."""

    proposer: str
    num_draft_tokens: int


@dataclass(frozen=True, slots=True)
class SpeculationSummary:
    """Speculation over the decode steps of a request; the definitions are `paceline.telemetry.SpeculationStats`'s.

    `mean_acceptance_length` is tokens per target forward, the bonus token included: 1.0 is plain decoding, None means
    that there was no decode step. `draft_acceptance_rate` is None where nothing was drafted. `plan`: the steps in their
    order, under the rules that are exact in distribution only: there the text depends on them as well as on the seed.
    """

    mean_acceptance_length: float | None
    draft_acceptance_rate: float | None
    num_drafts: int
    num_draft_tokens: int
    num_accepted_tokens: int
    plan: tuple[PlannedStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of an answer, in order. `is_draft`: its tokens were accepted draft tokens, not the target's own.

    `text` may be empty, and the text of a token may come with the next one: a character is never split.
    """

    text: str
    token_ids: tuple[int, ...]
    is_draft: bool


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """An answer. `finish_reason` is "stop" (end of text or turn, a stop token or string, the end of the form that was
    asked for), "length" (`max_tokens` or the capacity), "error" (no token could be drawn, and `error` says why; the
    text before it stands) or "abort".

    `sample_seed`: asked again with it as `seed` and n = 1, the same request gives the same answer. `is_lossless`:
    whether tokens have the target's own distribution; False under a rule that was allowed to be lossy. `logprobs`: one
    for each token of the answer, and `prompt_logprobs` one for each of the prompt, None for its first; both None unless
    asked for. `choices`: all answers where n > 1, this one first; empty where it is the only one.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReasonName
    prompt_token_ids: tuple[int, ...]
    usage: Usage
    timing: Timing
    speculation: SpeculationSummary
    error: str | None = None
    sample_seed: int = 0
    is_lossless: bool = True
    logprobs: tuple[TokenLogprobs, ...] | None = None
    prompt_logprobs: tuple[TokenLogprobs | None, ...] | None = None
    choices: tuple["RequestOutput", ...] = ()


def joined(choices: Sequence[RequestOutput]) -> RequestOutput:
    """The answers to one prompt as one output."""
    return choices[0] if len(choices) == 1 else replace(choices[0], choices=tuple(choices))
