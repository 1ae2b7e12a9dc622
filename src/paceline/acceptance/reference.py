"""The canonical sampler as array code: what a row of logits, its parameters and its key make of each other.

Written over the array API, so that it runs on NumPy and on torch tensors alike and logits stay on their device; the
compiled sampler (`paceline.acceptance.sampling`) draws the same tokens. In this order, with these precisions:

1. `process`: single logits replaced (penalties, bias, bans), then the mask. float32.
2. z = logits / temperature, in float64 as everything after it.
3. min-p keeps z >= max(z) + log(min_p), which is p >= min_p * max(p).
4. top-k keeps the k highest.
5. top-p weighs every id that is left with round(2^42 * exp(z - max(z))), an integer, and keeps the smallest number of
   the highest whose weights sum to at least top_p of all. Sums of integers are exact: no order, device or number of
   threads can make a difference, where a sum in floating point needs all of them fixed. An id of less than 2^-43 of
   the most likely one's probability weighs nothing.
6. argmax(z + g), with the noise g of `paceline.acceptance.noise`.

Higher means: of larger z, or of equal z and a lower id; every tie goes to the lowest id. The three truncations cut one
order at one place each. At temperature 0 steps 2 to 6 are the argmax of the logits. An id with the logit -inf is never
drawn.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from paceline.acceptance.base import NonFiniteLogitsError
from paceline.acceptance.elementary import Array, exp, log
from paceline.acceptance.noise import Stream, gumbel

WEIGHT_SCALE = 2.0**42  # weights of 2^20 ids add up in 63 bits
MAX_VOCAB_SIZE = 2**20
# Within these, different float32 logits stay different and finite when divided.
MIN_TEMPERATURE, MAX_TEMPERATURE = 2.0**-64, 2.0**64
_SMALLEST_NORMAL = 2.0**-1022


class NothingAllowedError(NonFiniteLogitsError):
    """Replacements and masks leave no token id that could be drawn."""


@dataclass(frozen=True, slots=True)
class DrawParams:
    """How one row is drawn from. `temperature` 0 is the argmax; `top_k` 0, `top_p` 1 and `min_p` 0 truncate nothing.

    Raises ValueError for a value out of range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    log_min_p: float = field(init=False)  # -inf for 0, and for what is too small to be a normal number

    def __post_init__(self) -> None:
        if self.temperature != 0 and not MIN_TEMPERATURE <= self.temperature <= MAX_TEMPERATURE:
            raise ValueError(f"temperature is {self.temperature!r}; expected 0, or 2^-64 to 2^64")
        if self.top_k < 0:
            raise ValueError(f"top_k is {self.top_k!r}; expected at least 1, or 0 for all ids")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p!r}; expected more than 0 and at most 1")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p is {self.min_p!r}; expected 0 to 1")
        log_min_p = float(log(np.asarray([self.min_p], np.float64))[0]) if self.min_p >= _SMALLEST_NORMAL else -math.inf
        object.__setattr__(self, "log_min_p", log_min_p)


@dataclass(frozen=True, slots=True)
class Replacements:
    """New logits for single ids: `values[i]`, float32, finite or -inf, for the id `ids[i]`, int32; no id twice."""

    ids: NDArray[np.int32]
    values: NDArray[np.float32]


def process(logits: Array, replacements: Replacements | None = None, mask: NDArray[np.uint32] | None = None) -> Array:
    """Step 1, from the target's own `logits`, float32 `[vocabulary]`.

    Bit i % 32 of word i // 32 of `mask` is 1 where id i is allowed. No replacement brings back what a mask rules out.

    Raises NonFiniteLogitsError where a logit is NaN or an infinity, or a replacement NaN or +inf.
    """
    xp = array_namespace(logits)
    if not bool(xp.all(xp.isfinite(logits))):
        raise NonFiniteLogitsError("the logits are not finite")
    if replacements is not None:
        logits = xp.asarray(logits, copy=True)
        ids = xp.asarray(replacements.ids.astype(np.int64), device=logits.device)
        values = xp.asarray(replacements.values, device=logits.device)
        if not bool(xp.all(values < math.inf)):
            raise NonFiniteLogitsError("a replaced logit is not finite")
        logits[ids] = values
    if mask is not None:
        bits = np.unpackbits(mask.astype("<u4").view(np.uint8), bitorder="little", count=logits.shape[0])
        allowed = xp.asarray(bits.astype(np.bool_), device=logits.device)
        logits = xp.where(allowed, logits, xp.full_like(logits, -math.inf))
    return logits


def law(logits: Array, params: DrawParams) -> Array:
    """The distribution that `sample` draws from, float64 `[vocabulary]`: 0 where nothing is left, the rest sums to 1.

    `logits` are processed ones, see `process`. Raises NonFiniteLogitsError for NaN and +inf, NothingAllowedError where
    all are -inf.
    """
    xp = array_namespace(logits)
    _check(logits, xp)
    if params.temperature == 0:
        return xp.astype(xp.arange(logits.shape[0], device=logits.device) == xp.argmax(logits), xp.float64)
    z = truncated(logits, params)
    weights = exp(z - xp.max(z))
    return weights / xp.sum(weights)


def sample(logits: Array, params: DrawParams, seed: int, position: int, stream: Stream = Stream.TARGET) -> int:
    """The token that the key (seed, position, stream) draws from processed `logits`; raises as `law`."""
    xp = array_namespace(logits)
    _check(logits, xp)
    if params.temperature == 0:
        return int(xp.argmax(logits))
    z = truncated(logits, params)
    tokens = xp.arange(z.shape[0], device=z.device)
    return int(xp.argmax(z + gumbel(seed, position, tokens, stream)))


def truncated(logits: Array, params: DrawParams) -> Array:
    """Steps 2 to 5 at a temperature above 0: z, and -inf for every id that is not kept."""
    xp = array_namespace(logits)
    z = xp.astype(logits, xp.float64) / params.temperature
    if params.min_p > 0:
        z = _where(xp, z >= xp.max(z) + params.log_min_p, z)
    if params.top_k == 0 and params.top_p == 1:
        return z
    order = xp.argsort(-z, stable=True)
    size = z.shape[0] if params.top_k == 0 else min(params.top_k, z.shape[0])
    if params.top_p < 1:
        size = _nucleus_size(xp, z[order[:size]], params.top_p)
    rank = xp.zeros_like(order)
    rank[order] = xp.arange(z.shape[0], dtype=order.dtype, device=z.device)
    return _where(xp, rank < size, z)


def _nucleus_size(xp: Any, z: Array, top_p: float) -> int:
    """How many of z, in order, top-p keeps: those before which less than top_p of the sum has come."""
    weights = xp.astype(xp.round(exp(z - z[0]) * WEIGHT_SCALE), xp.int64)
    total = int(xp.sum(weights))
    limit = min(math.ceil(top_p * float(total)), total)
    return int(xp.sum(xp.astype(xp.cumulative_sum(weights) < limit, xp.int64))) + 1


def _where(xp: Any, is_kept: Array, z: Array) -> Array:
    return xp.where(is_kept, z, xp.full_like(z, -math.inf))


def _check(logits: Array, xp: Any) -> None:
    if logits.shape[0] > MAX_VOCAB_SIZE:
        raise ValueError(f"a row has {logits.shape[0]} logits; expected at most {MAX_VOCAB_SIZE}")
    if not bool(xp.all(logits < math.inf)):  # NaN compares false
        raise NonFiniteLogitsError("the logits are not finite")
    if not bool(xp.any(logits > -math.inf)):
        raise NothingAllowedError("no token id is allowed: every logit is -inf")
