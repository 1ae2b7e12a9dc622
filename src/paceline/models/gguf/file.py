"""A small, fast and suspicious reader of GGUF headers (versions 2 and 3, little endian).

Reads metadata and the table of tensors, and hands out views of the mapped file. Every count, size and offset is checked
against the file's real size before it is used. It knows nothing of architectures or of what a tensor is for.
"""

import math
import mmap
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from paceline.errors import ModelFormatError, ModelNotFoundError, UnsupportedModelError
from paceline.models.base import TensorInfo, TensorType
from paceline.models.gguf.metadata import Cursor, Metadata, read_metadata
from paceline.models.quoting import quoted

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MAX_DIMENSIONS = 4
_DEFAULT_ALIGNMENT = 32  # bytes
_MIN_PAIR_BYTES = 8 + 1 + 4 + 1  # key length, key, value type, value
_MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8  # name length, name, number of dimensions, one dimension, type, offset

# fmt: off
_GGML_TYPE_NAMES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
    12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0",
}
# fmt: on


class GGUFFile:
    """An open model file. Use as a context manager, or call `close`.

    Views from `data` stay valid after `close`: the mapping is released with the last of them.
    """

    def __init__(self, path: Path, mapping: mmap.mmap, metadata: Metadata, tensors: dict[str, TensorInfo]) -> None:
        self.path = path
        self.metadata = metadata
        self.tensors: Mapping[str, TensorInfo] = MappingProxyType(tensors)
        self._mapping: mmap.mmap | None = mapping

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Map the file and read its header.

        Raises `ModelNotFoundError` where nothing can be read, `ModelFormatError` where the content is not a sound GGUF
        and `UnsupportedModelError` where a tensor has a type that cannot be run.
        """
        path = Path(path)
        mapping = _map(path)
        try:
            cursor = Cursor(mapping, path)
            num_tensors, num_pairs = _read_preamble(cursor)
            metadata = read_metadata(cursor, num_pairs)
            tensors = _read_tensors(cursor, num_tensors, _alignment(cursor, metadata))
        except BaseException:
            mapping.close()
            raise
        return cls(path, mapping, metadata, tensors)

    def data(self, name: str) -> NDArray[np.uint8]:
        """The packed bytes of a tensor: a read-only view of the file, no copy. `KeyError` for an unknown name."""
        if self._mapping is None:
            raise ValueError(f"{self.path} is closed")
        info = self.tensors[name]
        return np.frombuffer(self._mapping, np.uint8, info.num_bytes, info.offset)

    def floats(self, name: str) -> NDArray[np.float32]:
        """The values of an F32, F16 or BF16 tensor, one after the other: a view for F32, a copy for the others."""
        data = self.data(name)
        match self.tensors[name].type:
            case TensorType.F32:
                return data.view(np.float32)
            case TensorType.F16:
                with np.errstate(invalid="ignore"):  # signalling NaN, which stay NaN
                    return data.view(np.float16).astype(np.float32)
            case TensorType.BF16:  # the upper half of a float32
                return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
            case other:
                raise ValueError(f"tensor {name!r} is packed as {other.name}")

    def release(self, name: str) -> None:
        """Let the system drop a tensor's pages from memory; they are read again where a view is still used."""
        if self._mapping is None:
            raise ValueError(f"{self.path} is closed")
        info = self.tensors[name]
        start = info.offset // mmap.PAGESIZE * mmap.PAGESIZE
        self._mapping.madvise(mmap.MADV_DONTNEED, start, info.offset + info.num_bytes - start)

    def close(self) -> None:
        self._mapping = None  # never unmapped by hand: views may still point into it

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _map(path: Path) -> mmap.mmap:
    try:
        if path.exists() and not path.is_file():
            raise ModelNotFoundError(f"{path} is not a file; give the path of a .gguf file")
        with path.open("rb") as file:
            if file.seek(0, 2) == 0:
                raise ModelFormatError(f"{path} is empty, not a GGUF file; fetch it again")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelNotFoundError(f"cannot read {path}: {reason}; give the path of a .gguf file") from error


def _read_preamble(cursor: Cursor) -> tuple[int, int]:
    """Check magic and version; return the number of tensors and of metadata pairs."""
    path = cursor.path
    if cursor.size < 4 or cursor.take(4, "magic") != _MAGIC:
        raise ModelFormatError(
            f"{path} is not a GGUF file: it does not begin with 'GGUF'; give the path of a .gguf file"
        )
    version = cursor.uint32("the format version")
    if version not in _VERSIONS:
        if int.from_bytes(version.to_bytes(4, "little"), "big") in (1, *_VERSIONS):
            raise ModelFormatError(f"{path} is a big-endian GGUF; convert it to little endian")
        raise ModelFormatError(f"{path} has GGUF version {version}, expected 2 or 3; convert the model again")
    num_tensors = cursor.count("the number of tensors", _MIN_TENSOR_BYTES)
    return num_tensors, cursor.count("the number of metadata pairs", _MIN_PAIR_BYTES)


def _alignment(cursor: Cursor, metadata: Metadata) -> int:
    alignment = metadata.integer("general.alignment", _DEFAULT_ALIGNMENT)
    if alignment <= 0 or alignment & (alignment - 1):
        cursor.fail(f"general.alignment is {alignment}, not a power of two")
    return alignment


def _read_tensors(cursor: Cursor, count: int, alignment: int) -> dict[str, TensorInfo]:
    tensors: dict[str, TensorInfo] = {}
    for index in range(count):
        info = _read_tensor(cursor, index, alignment)
        if info.name in tensors:
            cursor.fail(f"tensor {quoted(info.name)} is listed twice")
        tensors[info.name] = info
    base = -(-cursor.position // alignment) * alignment
    return {name: _placed(cursor, info, base) for name, info in tensors.items()}


def _read_tensor(cursor: Cursor, index: int, alignment: int) -> TensorInfo:
    """One row of the table; its offset still counts from the start of the data section."""
    name = cursor.string(f"the name of tensor {index}")
    what = f"tensor {quoted(name)}"
    num_dimensions = cursor.uint32(what)
    if not 1 <= num_dimensions <= _MAX_DIMENSIONS:
        cursor.fail(f"{what} has {num_dimensions} dimensions, expected 1 to {_MAX_DIMENSIONS}")
    shape = tuple(cursor.uint64(what) for _ in range(num_dimensions))[::-1]
    type_number = cursor.uint32(what)
    offset = cursor.uint64(what)
    if offset % alignment:
        cursor.fail(f"{what} begins at offset {offset}, which is not a multiple of the alignment {alignment}")
    if 0 in shape:
        cursor.fail(f"{what} has a dimension of 0 in its shape {shape}")
    tensor_type = _tensor_type(cursor.path, name, type_number)
    if shape[-1] % tensor_type.block_size:
        cursor.fail(
            f"{what} has rows of {shape[-1]} weights, not a multiple of {tensor_type.name}'s {tensor_type.block_size}"
        )
    num_weights = math.prod(shape)  # exact: sizes that wrap 64 bits must not look small
    return TensorInfo(name, tensor_type, shape, offset, num_weights // tensor_type.block_size * tensor_type.block_bytes)


def _tensor_type(path: Path, name: str, number: int) -> TensorType:
    try:
        return TensorType(number)
    except ValueError:
        supported = ", ".join(known.name for known in TensorType)
        type_name = _GGML_TYPE_NAMES.get(number, f"number {number}")
        raise UnsupportedModelError(
            f"{path}: tensor {quoted(name)} has type {type_name}; this version runs {supported}: requantise the model"
        ) from None


def _placed(cursor: Cursor, info: TensorInfo, base: int) -> TensorInfo:
    offset = base + info.offset
    if offset + info.num_bytes > cursor.size:
        cursor.fail(
            f"tensor {quoted(info.name)}, {info.num_bytes} bytes at offset {offset}, ends past the end ({cursor.size})"
        )
    return TensorInfo(info.name, info.type, info.shape, offset, info.num_bytes)
