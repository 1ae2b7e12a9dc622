"""Which type each tensor of a folder takes when it is loaded, and making it so, a few rows at a time."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from paceline.errors import UsageError
from paceline.models.base import TensorRole, TensorType
from paceline.models.hf.quantize import BLOCK, Quantizer, to_q4_1, to_q8_0

Quantization = Literal["q8", "q4", "none"]
DEFAULT_QUANTIZATION: Quantization = "q8"

_CHUNK = 1 << 16  # weights: what is made of them while they are converted stays in a processor's own cache
_MAX_WORKERS = 8
_QUANTIZERS: dict[TensorType, Quantizer] = {TensorType.Q8_0: to_q8_0, TensorType.Q4_1: to_q4_1}
_STORED = {"F32": TensorType.F32, "F16": TensorType.F16, "BF16": TensorType.BF16}
_DTYPES = {TensorType.F32: "<f4", TensorType.F16: "<f2", TensorType.BF16: "<u2"}


def check_quantization(value: object) -> Quantization:
    """The value, which must be one of those that there are. Raises `UsageError`."""
    for known in get_args(Quantization):
        if value == known:
            return known  # type: ignore[no-any-return]
    raise UsageError(f"quantization is {value!r}; expected one of {', '.join(get_args(Quantization))}")


def stored_type(dtype: str) -> TensorType | None:
    """The type of weights as they are stored; None for what is no plain float that can be run."""
    return _STORED.get(dtype)


def loaded_type(stored: TensorType, role: TensorRole, shape: tuple[int, ...], wanted: Quantization) -> TensorType:
    """The type that a tensor has once it is loaded: vectors F32, matrices as wanted.

    Rows that are no whole number of blocks stay as they are stored. With `q4` the embedding and the head take 8 bits:
    they are what 4 bits would hurt most.
    """
    if len(shape) == 1:
        return TensorType.F32
    if wanted == "none" or shape[-1] % BLOCK:
        return stored
    is_layer = role.layer >= 0
    return TensorType.Q4_1 if wanted == "q4" and is_layer else TensorType.Q8_0


def to_floats(raw: NDArray[np.uint8], stored: TensorType) -> NDArray[np.float32]:
    """Stored bytes as numbers, in one dimension; a view where they are float32 already."""
    values = raw.view(_DTYPES[stored])
    if stored is TensorType.BF16:  # the upper half of a float32
        return (values.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaN, which stay NaN
        return values.astype(np.float32, copy=False)


def quantized(
    raw: NDArray[np.uint8], stored: TensorType, shape: tuple[int, int], target: TensorType
) -> NDArray[np.uint8]:
    """The blocks of a stored matrix, rows in order. Memory beyond them is a few chunks."""
    rows, columns = shape
    row_bytes = columns // target.block_size * target.block_bytes
    source, result = raw.reshape(rows, -1), np.empty((rows, row_bytes), np.uint8)
    quantize = _QUANTIZERS[target]

    def convert(chunk: slice) -> None:
        part = np.ascontiguousarray(source[chunk]).reshape(-1)
        result[chunk] = quantize(to_floats(part, stored).reshape(-1, columns))

    _for_each(convert, _chunks(rows, max(_CHUNK // columns, 1)))
    return result.reshape(-1)


def _chunks(rows: int, step: int) -> Iterator[slice]:
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))


def _for_each(work: Callable[[slice], None], chunks: Iterator[slice]) -> None:
    """On all processors that this process may use; numpy does its work outside of the interpreter's lock."""
    num_cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(min(num_cpus, _MAX_WORKERS)) as pool:
        for _ in pool.map(work, chunks):
            pass
