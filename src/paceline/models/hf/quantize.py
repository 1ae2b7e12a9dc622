"""Plain weights to blocks of 32 with scales of their own, laid out as in GGUF files. Pure and deterministic.

Scales are rounded to float16 first and codes computed with what they have become, halves to even. A block with a weight
that is not finite, or too large for float16, becomes NaN as a whole, so that a faulty file shows in the logits.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Halfs = NDArray[np.float16]
Bytes = NDArray[np.uint8]
Quantizer = Callable[[Floats], Bytes]
"""From `[rows, columns]`, columns a multiple of 32, to `[rows, bytes of a row]`."""

BLOCK = 32
_LARGEST = 30000  # scale: far above every real one, and the next larger float16 is no infinity


_UNCHECKED = np.errstate(over="ignore", invalid="ignore")  # signalling NaN too; what comes of it is looked for


@_UNCHECKED
def to_q8_0(rows: Floats) -> Bytes:
    """`d · c`, c from -127 to 127: no weight is further from its own than half a step."""
    x = _columns(rows)
    exact = np.abs(x).max(axis=0) / np.float32(127)
    d = _rounded(exact)
    is_faulty = _clear_faulty(x, d)
    d = np.where(d.astype(np.float32) * 127.5 < exact * 127, np.nextafter(d, np.float16(np.inf)), d)
    codes = _codes(x, d, -127, 127).astype(np.int8)
    return _packed(rows.shape[0], [d], codes.view(np.uint8), is_faulty)


@_UNCHECKED
def to_q4_1(rows: Floats) -> Bytes:
    """`d · c + m`, c from 0 to 15: the least and the largest weight of a block are met.

    Least squares brings the weights nearer on average, but gave a higher perplexity (docs/models.md).
    """
    x = _columns(rows)
    low = x.min(axis=0)
    d, m = _rounded((x.max(axis=0) - low) / np.float32(15)), _rounded(low)
    is_faulty = _clear_faulty(x, d, m)
    x -= m
    return _packed(rows.shape[0], [d, m], _nibbles(_codes(x, d, 0, 15)), is_faulty)


def _columns(rows: Floats) -> Floats:
    """A copy as `[32, blocks]`: what is done to each block is then done to long runs at once."""
    return np.array(rows.reshape(-1, BLOCK).T, np.float32, order="C", copy=True)


def _rounded(values: Floats) -> Halfs:
    return values.astype(np.float16)


def _clear_faulty(x: Floats, *scales: Halfs) -> NDArray[np.bool_]:
    """Which blocks cannot be expressed; their weights and scales are 0 from here on."""
    is_faulty: NDArray[np.bool_] = ~np.logical_and.reduce([np.abs(scale) <= _LARGEST for scale in scales])
    if is_faulty.any():
        x[:, is_faulty] = 0
        for scale in scales:
            scale[is_faulty] = 0
    return is_faulty


def _inverse(d: Halfs) -> Floats:
    """1 / d, and 0 where d is 0: codes make no difference there."""
    return np.divide(np.float32(1), d, out=np.zeros(d.shape, np.float32), where=d != 0, dtype=np.float32)


def _codes(x: Floats, d: Halfs, least: int, most: int) -> Floats:
    codes = x * _inverse(d)
    np.rint(codes, out=codes)
    return np.clip(codes, least, most, out=codes)


def _nibbles(codes: Floats) -> Bytes:
    """Byte j of a block: code j in the low half, code 16 + j in the high one."""
    whole = codes.astype(np.uint8)
    return whole[: BLOCK // 2] | np.left_shift(whole[BLOCK // 2 :], 4, dtype=np.uint8)


def _packed(num_rows: int, scales: list[Halfs], codes: Bytes, is_faulty: NDArray[np.bool_]) -> Bytes:
    """The scales of each block, then its codes, from `[blocks]` and `[bytes, blocks]`."""
    head = 2 * len(scales)
    blocks = np.empty((codes.shape[1], head + codes.shape[0]), np.uint8)
    for index, scale in enumerate(scales):
        written = np.where(is_faulty, np.float16(np.nan), scale).astype("<f2")
        blocks[:, 2 * index : 2 * index + 2] = written.view(np.uint8).reshape(-1, 2)
    blocks[:, head:] = codes.T
    return blocks.reshape(num_rows, -1)
