"""Rotary frequencies (Su et al., arXiv:2104.09864) and the ways of stretching them to longer contexts.

Pure functions in double precision; nothing here knows how a file spells its settings. `theta` is the base, `dim` the
number of rotated values of a head. Callers check their numbers: contexts are positive, bases, factors and all else that
a file sets lie between `LEAST` and `MOST`.
"""

import math
from collections.abc import Sequence

from paceline.models.base import Rope

LEAST, MOST = 1e-6, 1e12
"""Between these nothing that is computed here overflows, and no frequency becomes infinite."""


def plain_rope(theta: float, dim: int) -> Rope:
    """Pair i turns by `theta^(-2i / dim)` radians a position."""
    return Rope(tuple(theta ** (-2.0 * i / dim) for i in range(dim // 2)))


def divided_rope(theta: float, dim: int, divisors: Sequence[float]) -> Rope:
    """Plain frequencies, each divided by a number of its own: what GGUF's tensor `rope_freqs.weight` holds.

    Raises `ValueError` unless there are `dim / 2` divisors.
    """
    frequencies = plain_rope(theta, dim).frequencies
    return Rope(tuple(f / divisor for f, divisor in zip(frequencies, divisors, strict=True)))


def linear_rope(theta: float, dim: int, factor: float) -> Rope:
    """Positions divided by `factor` (Chen et al., arXiv:2306.15595)."""
    return divided_rope(theta, dim, [factor] * (dim // 2))


def llama3_rope(
    theta: float, dim: int, factor: float, low_freq_factor: float, high_freq_factor: float, original_context: int
) -> Rope:
    """Llama 3's scaling: pairs that turn often in the original context keep their frequency, pairs that turn rarely are
    divided by `factor`, and the frequencies between `low_freq_factor` and `high_freq_factor` turns are blended.
    """
    frequencies = plain_rope(theta, dim).frequencies
    divisors = []
    for frequency in frequencies:
        turns = original_context * frequency / (2 * math.pi)
        kept = _ramp(turns, low_freq_factor, high_freq_factor)
        divisors.append(1 / ((1 - kept) / factor + kept))
    return divided_rope(theta, dim, divisors)


def yarn_rope(
    theta: float,
    dim: int,
    factor: float,
    original_context: int,
    *,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    magnitude: float | None = None,
) -> Rope:
    """YaRN (Peng et al., arXiv:2309.00071): pairs with more than `beta_fast` turns in the original context are kept,
    those with fewer than `beta_slow` divided by `factor`, those between blended linearly by their index.

    The borders are rounded outwards to whole pairs, as llama.cpp and transformers do. `magnitude` None means the
    paper's `0.1 ln(factor) + 1`, or 1 where nothing is stretched.
    """

    def pair_with(turns: float) -> float:
        return dim * math.log(original_context / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first = max(math.floor(pair_with(beta_fast)), 0)
    last = min(math.ceil(pair_with(beta_slow)), dim - 1)
    divisors = []
    for i in range(dim // 2):
        stretched = _ramp(i, first, last)
        divisors.append(1 / (stretched / factor + 1 - stretched))
    if magnitude is None:
        magnitude = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0
    return Rope(divided_rope(theta, dim, divisors).frequencies, magnitude)


def _ramp(value: float, low: float, high: float) -> float:
    """0 up to `low`, 1 from `high` on, linear between; a step where they coincide."""
    return min(max((value - low) / max(high - low, 1e-3), 0.0), 1.0)
