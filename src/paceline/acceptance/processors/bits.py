"""Sets of tokens as bits: bit i % 32 of word i // 32 is 1 where token i is in the set, and 0 behind the vocabulary.

The form that the compiled sampler reads and grammar libraries write.
"""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bits: TypeAlias = NDArray[np.uint32]

WORD = 32


def packed(is_in: NDArray[np.bool_]) -> Bits:
    """The set of those tokens for which `is_in`, `[vocabulary]`, is True."""
    octets = np.packbits(is_in, bitorder="little")
    padded = np.zeros(-(-len(is_in) // WORD) * 4, np.uint8)
    padded[: len(octets)] = octets
    return padded.view("<u4").astype(np.uint32, copy=False)


def unpacked(bits: Bits, vocab_size: int) -> NDArray[np.bool_]:
    return np.unpackbits(bits.astype("<u4", copy=False).view(np.uint8), count=vocab_size, bitorder="little").view(
        np.bool_
    )


def all_but(tokens: Iterable[int], vocab_size: int) -> Bits:
    is_in = np.ones(vocab_size, np.bool_)
    is_in[list(tokens)] = False
    return packed(is_in)


def only(tokens: Iterable[int], vocab_size: int) -> Bits:
    is_in = np.zeros(vocab_size, np.bool_)
    is_in[list(tokens)] = True
    return packed(is_in)


def without(bits: Bits, tokens: Iterable[int]) -> Bits:
    """A copy that lacks a few more."""
    bits = bits.copy()
    for token in tokens:
        bits[token // WORD] &= np.uint32(~(1 << token % WORD) & 0xFFFFFFFF)
    return bits


def is_set(bits: Bits, token: int) -> bool:
    return bool(int(bits[token // WORD]) >> token % WORD & 1)
