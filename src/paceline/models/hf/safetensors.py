"""A small and suspicious reader of safetensors files: a JSON table of tensors, then their bytes.

The format's own library hands out no bfloat16 without PyTorch; the format is simple, and mapping it here lets a runtime
read straight from the file. Every size and offset is checked against the file's real size before it is used. It knows
nothing of what a tensor is for.
"""

import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Never, Self

import numpy as np
from numpy.typing import NDArray

from paceline.errors import ModelFormatError, ModelNotFoundError
from paceline.models.hf.settings import parse_object
from paceline.models.quoting import quoted

_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 1 << 24  # 100,000 tensors; what it can grow to in memory stays small
_MAX_DIMENSIONS = 8
_METADATA = "__metadata__"
# fmt: off
_ITEM_BITS = {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E4M3FNUZ": 8, "F8_E5M2": 8, "F8_E5M2FNUZ": 8, "F8_E8M0": 8,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32,
    "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}
# fmt: on


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One row of the table."""

    name: str
    dtype: str
    """As the format names it: `F32`, `BF16`, …"""
    shape: tuple[int, ...]
    """Row-major; empty for a single value."""
    offset: int
    """Bytes from the start of the file."""
    num_bytes: int


class SafetensorsFile:
    """An open file. Views from `data` stay valid after `close`: the mapping is released with the last of them."""

    def __init__(self, path: Path, mapping: mmap.mmap, tensors: dict[str, StoredTensor]) -> None:
        self.path = path
        self.tensors: Mapping[str, StoredTensor] = MappingProxyType(tensors)
        self._mapping: mmap.mmap | None = mapping

    @classmethod
    def open(cls, path: Path) -> Self:
        """Map the file and read its table.

        Raises `ModelNotFoundError` where nothing can be read and `ModelFormatError` where the content is not sound.
        """
        mapping = _map(path)
        try:
            tensors = _read_table(path, mapping)
        except BaseException:
            mapping.close()
            raise
        return cls(path, mapping, tensors)

    def data(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor: a read-only view of the file, no copy, aligned to nothing."""
        info = self.tensors[name]
        return np.frombuffer(self._open_mapping(), np.uint8, info.num_bytes, info.offset)

    def release(self, name: str) -> None:
        """Let the system drop a tensor's pages from memory; they are read again where a view is still used."""
        info = self.tensors[name]
        start = info.offset // mmap.PAGESIZE * mmap.PAGESIZE
        self._open_mapping().madvise(mmap.MADV_DONTNEED, start, info.offset + info.num_bytes - start)

    def close(self) -> None:
        self._mapping = None  # never unmapped by hand: views may still point into it

    def _open_mapping(self) -> mmap.mmap:
        if self._mapping is None:
            raise ValueError(f"{self.path} is closed")
        return self._mapping


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) <= _LENGTH_BYTES:
                _fail(path, "the file is truncated")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ModelNotFoundError(f"cannot read {path}: {error.strerror}; fetch the model again") from error


def _fail(path: Path, problem: str) -> Never:
    raise ModelFormatError(f"{path}: {problem}; the file is damaged, fetch or convert it again")


def _read_table(path: Path, mapping: mmap.mmap) -> dict[str, StoredTensor]:
    """The tensors by name. They must fill the file behind the table without a gap, as the format demands."""
    length = int.from_bytes(mapping[:_LENGTH_BYTES], "little")
    start = _LENGTH_BYTES + length
    if length > _MAX_HEADER_BYTES or start > len(mapping):
        _fail(path, f"a header of {length} bytes, in a file of {len(mapping)}, cannot be")
    header = parse_object(mapping[_LENGTH_BYTES:start], f"{path}: the header")
    header.pop(_METADATA, None)
    tensors = {name: _read_tensor(path, name, row, start) for name, row in header.items()}
    end = start
    for info in sorted(tensors.values(), key=lambda info: (info.offset, info.num_bytes)):
        if info.offset != end:
            _fail(path, f"tensor {quoted(info.name)} begins at byte {info.offset}, expected {end}")
        end += info.num_bytes
    if end != len(mapping):
        _fail(path, f"the tensors end at byte {end}, the file at {len(mapping)}")
    return tensors


def _read_tensor(path: Path, name: str, row: object, start: int) -> StoredTensor:
    what = f"tensor {quoted(name)}"
    if not isinstance(row, dict):
        _fail(path, f"{what} is described by {quoted(row)}")
    dtype, shape, offsets = row.get("dtype"), _sizes(row.get("shape")), _sizes(row.get("data_offsets"))
    if not isinstance(dtype, str) or shape is None or offsets is None or len(offsets) != 2:
        _fail(path, f"{what} needs a dtype, a shape and two data_offsets, not {quoted(row)}")
    begin, end = offsets
    if begin > end:
        _fail(path, f"{what} ends before it begins: {begin} to {end}")
    bits = _ITEM_BITS.get(dtype)
    if bits is None:
        _fail(path, f"{what} has the unknown dtype {quoted(dtype)}")
    if math.prod(shape) * bits != 8 * (end - begin):  # exact: sizes that wrap 64 bits must not look small
        _fail(path, f"{what} has {end - begin} bytes, which shape {quoted(shape)} in {dtype} does not take")
    return StoredTensor(name, dtype, shape, start + begin, end - begin)


def _sizes(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > _MAX_DIMENSIONS:
        return None
    if not all(type(size) is int and 0 <= size < 1 << 63 for size in value):
        return None
    return tuple(value)
