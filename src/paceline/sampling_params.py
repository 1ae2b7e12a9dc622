"""How the text of one request is to be chosen and where it ends. Holds only what this version honours."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from paceline import checks
from paceline.errors import UsageError
from paceline.response_format import ResponseFormat, checked_format

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_MAX_TOKENS = 256
MAX_STOPS = 64
MAX_BAD_WORDS = 1000
MAX_CHOICES = 16384
MAX_LOGPROBS = 20
MIN_TEMPERATURE = 1e-6  # of those above 0: a logit divided by less says nothing that 0 would not
MAX_TEMPERATURE = 2.0
SMALLEST = 5e-324  # above 0

UserLogitsProcessor: TypeAlias = "Callable[[Sequence[int], NDArray[np.float32]], NDArray[np.float32]]"
"""From the tokens of the answer before a row (of its draft too) and a copy of the row's logits, float32 `[vocabulary]`
without padding, to the row to go on with. A pure function of these two: it is called for rows that come to nothing."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Names, ranges and defaults are those of vLLM's `SamplingParams`, but for a greater default of `max_tokens` and
    the default `temperature` of 0. What is out of range is refused, never moved into it.

    A token's logits go through these, in this order: `logits_processors`; `repetition_penalty`; `presence_penalty` and
    `frequency_penalty`; `logit_bias`; `bad_words`; `allowed_token_ids`; `min_tokens`; `response_format`; `temperature`;
    `min_p`; `top_k`; `top_p`. Each sees the tokens before it, those of the draft that it is checked with included.

    `max_tokens`: the most tokens to generate, at least 1; None means until the model's capacity.

    `temperature`: from 1e-6 to 2, or 0, which takes the most likely token at every position; what comes behind it in
    the order then has no effect.

    `top_p` (above 0, at most 1): of the most likely tokens, the fewest that have this much of the probability. `top_k`:
    so many of them; 0 or -1 for all. `min_p` (0 to 1): those at least this likely relative to the most likely one.

    `repetition_penalty` (above 0; 1 is none): divides the logits above 0 of tokens of the prompt and the answer and
    multiplies the others. `presence_penalty` and `frequency_penalty` (-2 to 2): subtracted from the logits of tokens of
    the answer, once and for each occurrence.

    `logit_bias`: from token ids to what is added to their logits, -100 to 100; kept as pairs in the order of the ids.
    `allowed_token_ids`: no other tokens may come. `bad_words`: may not be written, neither at the beginning of a text
    nor behind a space; a word of several tokens loses its last one where the others stand.

    `stop_token_ids`: generation ends with the first of these, which is the last token of the result. The model's own
    end-of-text tokens end it too unless `ignore_eos`. `stop`: generation ends before the first of these texts.
    `min_tokens`: what would end the answer does not come, or does not count, before it has so many.

    `seed`: the same one gives the same answer, 0 to 2**64 - 1; None draws one, which the result tells. `n`: answers to
    give, each with a seed of its own; more than one needs a temperature above 0.

    `logprobs`, `prompt_logprobs`: how many of the most likely tokens to tell at every position of the answer and of the
    prompt with their log probabilities, beside the token there; up to 20, or -1 for the whole vocabulary.

    `logits_processors`: functions of your own (see `UserLogitsProcessor`), the first of all: what they give probability
    to can still be banned behind them, as vLLM has it.

    `response_format`: the form that the answer must have, kept as a `ResponseFormat`. One of

        {"type": "text"}                                          any text, as None
        {"type": "json_object"}                                   any JSON object
        {"type": "json_schema", "json_schema": {"schema": {…}}}   JSON that the schema allows; properties in its order
        {"type": "regex", "pattern": "…"}                         a regular expression, matched by all of the text
        {"type": "grammar", "grammar": "…"}                       an EBNF, in Lark's syntax or GBNF (`root ::= …`)

    `json_schema` may have a `name`, a `description` and `strict` beside the schema, as OpenAI's has: labels, which
    change nothing; what is asked for is always enforced, and a keyword that cannot be is refused. The answer ends at an
    end token where the form may end, or without one as soon as nothing could follow, before `min_tokens` too. One that
    is cut short by `max_tokens` is the beginning of such a text.

    Raises UsageError for a value out of range. Equal values are equal and have one hash, if `logits_processors` do.
    """

    max_tokens: int | None = DEFAULT_MAX_TOKENS
    temperature: float = 0.0
    stop_token_ids: Sequence[int] = ()
    ignore_eos: bool = False
    stop: str | Sequence[str] = ()
    min_tokens: int = 0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] | Sequence[tuple[int, float]] = ()
    bad_words: Sequence[str] = ()
    allowed_token_ids: Sequence[int] | None = None
    seed: int | None = None
    n: int = 1
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    logits_processors: Sequence[UserLogitsProcessor] = ()
    response_format: Mapping[str, Any] | ResponseFormat | None = None

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_choices()
        kept = {
            "stop_token_ids": checks.checked_ids("stop_token_ids", self.stop_token_ids),
            "stop": checks.checked_texts("stop", self.stop, MAX_STOPS, or_one=True),
            "bad_words": checks.checked_texts("bad_words", self.bad_words, MAX_BAD_WORDS, or_one=False),
            "logit_bias": checks.checked_biases(self.logit_bias),
            "allowed_token_ids": self._checked_allowed(),
            "logits_processors": self._checked_processors(),
            "response_format": checked_format(self.response_format),
        }
        for name, value in kept.items():  # a value: hashable, never changed
            object.__setattr__(self, name, value)

    def _check_numbers(self) -> None:
        if self.temperature != 0 or isinstance(self.temperature, bool):
            allowed = f"0 or a number from {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}"
            checks.check_number("temperature", self.temperature, MIN_TEMPERATURE, MAX_TEMPERATURE, allowed)
        checks.check_number("top_p", self.top_p, SMALLEST, 1, "a number above 0, at most 1")
        checks.check_integer("top_k", self.top_k, -1)
        checks.check_number("min_p", self.min_p, 0, 1)
        checks.check_number(
            "repetition_penalty", self.repetition_penalty, SMALLEST, sys.float_info.max, "a number above 0"
        )
        checks.check_number("presence_penalty", self.presence_penalty, -2, 2)
        checks.check_number("frequency_penalty", self.frequency_penalty, -2, 2)

    def _check_choices(self) -> None:
        checks.check_integer("max_tokens", self.max_tokens, 1, or_none=True)
        checks.check_integer("min_tokens", self.min_tokens, 0)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise UsageError(f"min_tokens is {self.min_tokens}, more than max_tokens; expected 0 to {self.max_tokens}")
        checks.check_flag("ignore_eos", self.ignore_eos)
        checks.check_integer("seed", self.seed, 0, 2**64 - 1, or_none=True)
        checks.check_integer("n", self.n, 1, MAX_CHOICES)
        if self.n > 1 and self.temperature == 0:
            raise UsageError(f"n is {self.n} at temperature 0, where all would be the same; expected 1")
        checks.check_integer("logprobs", self.logprobs, -1, MAX_LOGPROBS, or_none=True)
        checks.check_integer("prompt_logprobs", self.prompt_logprobs, -1, MAX_LOGPROBS, or_none=True)

    def _checked_allowed(self) -> tuple[int, ...] | None:
        if self.allowed_token_ids is None:
            return None
        allowed = checks.checked_ids("allowed_token_ids", self.allowed_token_ids)
        if not allowed:
            raise UsageError("allowed_token_ids is empty; expected None or at least one token id")
        return allowed

    def _checked_processors(self) -> tuple[UserLogitsProcessor, ...]:
        given = self.logits_processors
        if not isinstance(given, Sequence):
            raise UsageError(f"logits_processors is {given!r:.100}; expected a sequence of functions")
        for processor in given:
            if not callable(processor):
                raise UsageError(f"logits_processors holds {processor!r:.100}; expected functions")
        return tuple(given)
