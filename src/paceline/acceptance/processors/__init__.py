"""Logits processors: what sampling parameters do to a row before its temperature. `base` holds the contract."""

from paceline.acceptance.processors.bad_words import BadWords, Encode, bad_word_sequences
from paceline.acceptance.processors.base import Edit, LogitsProcessor, Mask
from paceline.acceptance.processors.bias import LogitBias
from paceline.acceptance.processors.bits import Bits
from paceline.acceptance.processors.fixed import FixedMask
from paceline.acceptance.processors.min_tokens import MinTokens
from paceline.acceptance.processors.occurrence import OccurrencePenalties
from paceline.acceptance.processors.repetition import RepetitionPenalty
from paceline.acceptance.processors.user import LogitsProcessorError, UserProcessor

__all__ = [
    "BadWords",
    "Bits",
    "Edit",
    "Encode",
    "FixedMask",
    "LogitBias",
    "LogitsProcessor",
    "LogitsProcessorError",
    "Mask",
    "MinTokens",
    "OccurrencePenalties",
    "RepetitionPenalty",
    "UserProcessor",
    "bad_word_sequences",
]
