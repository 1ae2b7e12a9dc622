"""The product's own samplers in an enumeration: what is committed and what is drafted are told apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rule_enumeration import Row, Target, Tokens

from paceline.acceptance import Law, Sampler
from paceline.acceptance.canonical import CanonicalSampler, create_sampler
from paceline.acceptance.processors import (
    BadWords,
    Edit,
    LogitsProcessor,
    Mask,
    MinTokens,
    OccurrencePenalties,
    RepetitionPenalty,
    UserProcessor,
    bad_word_sequences,
)
from paceline.acceptance.processors.bits import Bits
from paceline.sampling_params import SamplingParams

PROMPT: Tokens = (1,)
WORDS = {"a": (0, 1, 1), " a": (1, 0, 1), "b": (1, 1, 0)}
"""Bad words of several tokens. Behind any two tokens one at most is banned, so that there always is a next one."""


def encode(word: str) -> Sequence[int]:
    return WORDS.get(word, ())


def look_at_the_text(tokens: Sequence[int], row: NDArray[np.float32]) -> NDArray[np.float32]:
    """A caller's processor: what it favours, and how much, depends on every token of the answer."""
    row[sum(token + 1 for token in tokens) % len(row)] += np.float32(0.7) * len(tokens)
    return row


@dataclass(frozen=True)
class Setting:
    """Sampling parameters for an enumeration. `depends_on_text`: p differs with the tokens of the answer before it."""

    name: str
    fields: Mapping[str, Any]
    depends_on_text: bool = True

    def sampler(self, vocab_size: int) -> CanonicalSampler:
        return create_sampler(
            SamplingParams(**{"temperature": 1.0, **self.fields}),
            seed=0,
            prompt=PROMPT,
            vocab_size=vocab_size,
            stop_ids=[0],
            encode=encode,
        )


ALL: dict[str, Any] = {
    "temperature": 0.8,
    "repetition_penalty": 1.3,
    "presence_penalty": 0.4,
    "frequency_penalty": -0.7,
    "logit_bias": {0: 0.9},
    "bad_words": ["a", "b"],
    "min_tokens": 2,
    "logits_processors": [look_at_the_text],
    "min_p": 0.02,
    "top_p": 0.95,
}
SETTINGS = (
    Setting("repetition", {"repetition_penalty": 1.8}),
    Setting("repetition below 1", {"repetition_penalty": 0.6}),
    Setting("presence", {"presence_penalty": 1.3}),
    Setting("frequency", {"frequency_penalty": 0.9}),
    Setting("frequency below 0", {"frequency_penalty": -0.9, "temperature": 1.5}),
    Setting("bias", {"logit_bias": {0: 1.5, 1: -2.0}}, depends_on_text=False),
    Setting("min_p", {"min_p": 0.3, "presence_penalty": 0.9}),
    Setting("top_p", {"top_p": 0.7, "presence_penalty": 0.9, "temperature": 1.5}),
    Setting("top_k", {"top_k": 2, "frequency_penalty": 0.9}),
    Setting("bad words", {"bad_words": ["a", "b"]}),
    Setting("min_tokens", {"min_tokens": 2}),
    Setting("allowed", {"allowed_token_ids": [0, 1]}, depends_on_text=False),
    Setting("user", {"logits_processors": [look_at_the_text]}),
    Setting("greedy", {"temperature": 0, "presence_penalty": 1.3}),
    Setting("all", ALL),
)


class SampledTarget(Target):
    """Plain decoding asks one sampler, told of every token; a verification asks one that was told of what is committed,
    and names the draft. `make` gives the verification's, where it is to be another one.
    """

    def __init__(self, vocab_size: int, seed: int, setting: Setting, make: Callable[[], Sampler] | None = None) -> None:
        super().__init__(vocab_size, seed, lambda logits, prefix: self._behind(self._create, prefix, (), logits))
        self._create: Callable[[], Sampler] = lambda: setting.sampler(vocab_size)
        self._make = make or self._create
        self.law_behind = lru_cache(None)(self._law_behind)  # type: ignore[method-assign]

    def _law_behind(self, committed: Tokens, drafted: Tokens) -> Law:
        law = self._behind(self._make, committed, drafted, self.logits((*committed, *drafted)))
        law.flags.writeable = False
        return law

    @staticmethod
    def _behind(create: Callable[[], Sampler], committed: Tokens, drafted: Tokens, logits: Row) -> Law:
        sampler = create()
        sampler.extend(committed)
        return sampler.law(logits, len(committed) + len(drafted), drafted)


class _Forgetful:
    """Does what another processor does where nothing is drafted."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def extend(self, tokens: Sequence[int]) -> None:
        self._processor.extend(tokens)

    def is_active(self, drafted: Sequence[int]) -> bool:  # noqa: ARG002
        return bool(self._processor.is_active(()))


class ForgetfulEdit(_Forgetful, Edit):
    def apply(self, row: Row, drafted: Sequence[int]) -> None:  # noqa: ARG002
        self._processor.apply(row, ())


class ForgetfulMask(_Forgetful, Mask):
    def allowed(self, drafted: Sequence[int]) -> Bits:  # noqa: ARG002
        allowed: Bits = self._processor.allowed(())
        return allowed


def forgetful_processors(vocab_size: int) -> dict[str, Callable[[], LogitsProcessor]]:
    """One of every kind that looks at the text, ignoring what is drafted; by the name of the setting that it is for."""
    words = bad_word_sequences(["a", "b"], encode)
    return {
        "repetition": lambda: ForgetfulEdit(RepetitionPenalty(1.8, PROMPT)),
        "presence": lambda: ForgetfulEdit(OccurrencePenalties(1.3, 0)),
        "frequency": lambda: ForgetfulEdit(OccurrencePenalties(0, 0.9)),
        "bad words": lambda: ForgetfulMask(BadWords(words, vocab_size)),
        "min_tokens": lambda: ForgetfulMask(MinTokens(2, [0], vocab_size)),
        "user": lambda: ForgetfulEdit(UserProcessor(look_at_the_text)),
    }
