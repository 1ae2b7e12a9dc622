"""The noise of sampling, a function of (sample seed, absolute position, token id, stream): the same bits everywhere.

Nothing is drawn in order, so nothing can be drawn out of order: a rejected draft, a preemption or another batch costs
no randomness. One integer hash and one logarithm, both written out operation by operation (here and in `elementary`),
so that NumPy, native and torch code agree bit for bit.

The hash has two steps. All arithmetic is of 64 bits and wraps; mix is the finaliser of SplitMix64 (Steele, Lea and
Flood, "Fast splittable pseudorandom number generators", 2014, with Stafford's constants, variant 13), a bijection:

    mix(x):  x ^= x >> 30;  x *= M1;  x ^= x >> 27;  x *= M2;  x ^= x >> 31

1. The key of a row, once for all of its tokens, is two words a and b. Each absorbs seed, position and stream in turn,
   h = mix((h ^ word) + G), from a start of its own.
2. A token's number is a step of SplitMix64 from a, with b between its two halves:
   x = a + token * G;  x ^= x >> 30;  x *= M1;  x ^= b;  x ^= x >> 27;  x *= M2;  x ^= x >> 31.

SplitMix64 alone would give two rows whose states lie close together the same numbers, some tokens apart: b rules that
out. A token costs two multiplications of 64 bits and one by a constant; on processors without such vector instructions
each is three of 32 bits, and four tokens still take some ten cycles. A row of equal keys and different tokens never
repeats a number, since step 2 is a bijection of the token.

A uniform is n 2^-53 from the upper 53 bits n of a token's number, and 2^-54 where n is 0: in (0, 1), exact in float64.
Gumbel noise is -log(-log u), between -3.7 and 36.8, absolute error below 1e-14.
"""

from enum import IntEnum

import numpy as np
from array_api_compat import array_namespace

from paceline.acceptance.elementary import Array, log

MAX_SEED = 2**64 - 1
MAX_POSITION = 2**63 - 1
MAX_TOKEN = 2**31 - 1

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFTS = (30, 27, 31)
# Where keys start: the first fraction bits of pi.
_STARTS = (0x243F6A8885A308D3, 0x13198A2E03707344)
_SAMPLE_START = 0xA4093822299F31D0


class Stream(IntEnum):
    """What a number is drawn for. Equal keys in different streams give independent numbers.

    TARGET is the noise g of `argmax(z + g)`, the target's own draw. A draft that is coupled to the target on purpose is
    drawn with it too, and may then only be judged by the rule `match`: the same noise in a ratio test would bias it.
    """

    TARGET = 0
    DRAFT = 1  # a sampled draft token, independent of the target's draw
    ACCEPT = 2  # the uniform of a ratio test
    RESIDUAL = 3  # the token that is emitted in place of a rejected one


def uniform(seed: int, position: int, tokens: Array, stream: Stream) -> Array:
    """Uniforms in (0, 1) with 53 bits, float64, for token ids 0 to 2^31 - 1 in an integer array of at least one
    dimension: of NumPy, torch or another library, on its device.

    Raises ValueError unless 0 <= seed < 2^64 and 0 <= position < 2^63.
    """
    xp = array_namespace(tokens)
    a, b = (_signed(word) for word in row_key(seed, position, stream))
    x = xp.astype(tokens, xp.int64) * _signed(_GOLDEN) + a  # signed arithmetic wraps to the same bits
    x = (x ^ _shifted(x, _SHIFTS[0])) * _signed(_FACTORS[0]) ^ b
    x = (x ^ _shifted(x, _SHIFTS[1])) * _signed(_FACTORS[1])
    n = _shifted(x ^ _shifted(x, _SHIFTS[2]), 11)
    return (xp.astype(n, xp.float64) + 0.5 * xp.astype(n == 0, xp.float64)) * 2.0**-53


def uniform_of(seed: int, position: int, token: int, stream: Stream) -> float:
    """`uniform` for one token, the same bits."""
    return float(uniform(seed, position, np.asarray([token]), stream)[0])


def gumbel(seed: int, position: int, tokens: Array, stream: Stream) -> Array:
    """Standard Gumbel noise, -log(-log u) of `uniform`; see there."""
    return -log(-log(uniform(seed, position, tokens, stream)))


def sample_seed(seed: int, i: int) -> int:
    """The sample seed of choice `i` of a request with `seed`: the seed itself for choice 0, and no two the same but by
    a chance of 2^-64. Raises ValueError unless 0 <= seed < 2^64 and i >= 0."""
    _check("seed", seed, MAX_SEED)
    _check("choice", i, MAX_POSITION)
    return seed if i == 0 else _absorb(_SAMPLE_START, seed, i)


def row_key(seed: int, position: int, stream: Stream) -> tuple[int, int]:
    """The words a and b of a row's key. Raises ValueError for a seed or a position out of range."""
    _check("seed", seed, MAX_SEED)
    _check("position", position, MAX_POSITION)
    a, b = (_absorb(start, seed, position, stream) for start in _STARTS)
    return a, b


def _absorb(state: int, *words: int) -> int:
    for word in words:
        state = _mix(((state ^ word) + _GOLDEN) & _MASK)
    return state


def _mix(x: int) -> int:
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        x = (x ^ x >> shift) * factor & _MASK
    return x ^ x >> _SHIFTS[-1]


def _check(name: str, value: int, largest: int) -> None:
    if not 0 <= value <= largest:
        raise ValueError(f"the {name} is {value}; expected an integer from 0 to {largest}")


def _shifted(x: Array, shift: int) -> Array:
    """x >> shift of unsigned numbers, held in signed ones."""
    return (x >> shift) & ((1 << (64 - shift)) - 1)


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word
