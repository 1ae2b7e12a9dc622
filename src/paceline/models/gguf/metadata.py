"""The metadata of a GGUF header: reading its values, and getters that name the key that is missing or has another type.

Knows the encoding of values, not what any key means.
"""

import struct
from collections.abc import Iterator, Mapping
from mmap import mmap
from pathlib import Path
from typing import Never

import numpy as np
from numpy.typing import NDArray

from paceline.errors import ModelFormatError
from paceline.models.quoting import quoted

Numbers = NDArray[np.generic]
Value = bool | int | float | str | list[str] | Numbers

_BOOL, _STRING, _ARRAY = 7, 8, 9
_SCALARS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    _BOOL: "<u1",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
_UINT64 = struct.Struct("<Q")
_UINT32 = struct.Struct("<I")


class Cursor:
    """A position in the mapped file that only moves forward and never past the end."""

    def __init__(self, mapping: mmap, path: Path) -> None:
        self.path = path
        self.position = 0
        self.size = len(mapping)
        self._mapping = mapping

    def fail(self, problem: str) -> Never:
        raise ModelFormatError(f"{self.path}: {problem}; the file is damaged, fetch or convert it again")

    def take(self, num_bytes: int, what: str) -> bytes:
        start, end = self.position, self.position + num_bytes
        if end > self.size:
            self.fail(f"truncated: {what} needs {num_bytes} bytes at offset {start}, the file has {self.size} in all")
        self.position = end
        return self._mapping[start:end]

    def uint32(self, what: str) -> int:
        value: int = _UINT32.unpack(self.take(4, what))[0]
        return value

    def uint64(self, what: str) -> int:
        value: int = _UINT64.unpack(self.take(8, what))[0]
        return value

    def count(self, what: str, min_bytes: int) -> int:
        """A count of things that take at least `min_bytes` each, so that no lie about it can cost memory or time."""
        count = self.uint64(what)
        if count * min_bytes > self.size - self.position:
            self.fail(f"{what} is {count}, more than a file of {self.size} bytes could hold")
        return count

    def string(self, what: str) -> str:
        return self._decoded(self.take(self.uint64(what), what), what)

    def strings(self, count: int, what: str) -> list[str]:
        mapping, position, size, unpack = self._mapping, self.position, self.size, _UINT64.unpack_from
        raw = []
        for _ in range(count):  # tight on purpose: a vocabulary and its merges are hundreds of thousands of rounds
            if position + 8 > size:
                self.fail(f"truncated inside {what}")
            start = position + 8
            position = start + unpack(mapping, position)[0]
            raw.append(mapping[start:position])
            if position > size:
                self.fail(f"truncated inside {what}")
        self.position = position
        try:
            return [item.decode() for item in raw]
        except UnicodeDecodeError:
            return [self._decoded(item, f"{what}, item {index}") for index, item in enumerate(raw)]

    def numbers(self, dtype: str, count: int, what: str) -> Numbers:
        return np.frombuffer(self.take(count * np.dtype(dtype).itemsize, what), dtype, count)

    def _decoded(self, raw: bytes, what: str) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            self.fail(f"{what} is not valid UTF-8 ({error.reason} at byte {error.start})")


class Metadata(Mapping[str, Value]):
    """The key/value pairs of a header. The typed getters raise `ModelFormatError` naming file and key.

    A getter's `default` stands for a missing key only; a value of another type is an error either way.
    """

    def __init__(self, values: dict[str, Value], path: Path) -> None:
        self._values = values
        self._path = path

    def __getitem__(self, key: str) -> Value:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self._refuse(key, "a whole number", value)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(key, "a number", value)
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            self._refuse(key, "true or false", value)
        return value

    def string(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            self._refuse(key, "a string", value)
        return value

    def strings(self, key: str) -> list[str]:
        value = self._get(key, None)
        if not isinstance(value, list):
            self._refuse(key, "an array of strings", value)
        return value

    def integers(self, key: str) -> list[int]:
        value = self._get(key, None)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
            self._refuse(key, "an array of whole numbers", value)
        integers: list[int] = value.tolist()
        return integers

    def _get(self, key: str, default: Value | None) -> Value:
        value = self._values.get(key, default)
        if value is None:
            self._fail(f"metadata key {quoted(key)} is missing")
        return value

    def _refuse(self, key: str, expected: str, value: Value) -> Never:
        match value:
            case str():
                kind = quoted(value)
            case bool() | int() | float():
                kind = str(value)
            case _:
                kind = "an array"
        self._fail(f"metadata key {quoted(key)} should be {expected}, not {kind}")

    def _fail(self, problem: str) -> Never:
        raise ModelFormatError(f"{self._path}: {problem}; fetch or convert it again, or choose another model")


def read_metadata(cursor: Cursor, count: int) -> Metadata:
    """Read `count` pairs at the cursor."""
    values: dict[str, Value] = {}
    for index in range(count):
        key = cursor.string(f"metadata key {index}")
        if not key or key in values:
            cursor.fail(f"metadata key {index}, {quoted(key)}, is {'given twice' if key else 'empty'}")
        values[key] = _read_value(cursor, f"metadata key {quoted(key)}")
    return Metadata(values, cursor.path)


def _read_value(cursor: Cursor, what: str) -> Value:
    type_number = cursor.uint32(what)
    if type_number == _STRING:
        return cursor.string(what)
    if type_number == _ARRAY:
        return _read_array(cursor, what)
    if type_number not in _SCALARS:
        cursor.fail(f"{what} has the unknown value type {type_number}")
    value = cursor.numbers(_SCALARS[type_number], 1, what).item()
    if type_number == _BOOL:
        if value not in (0, 1):
            cursor.fail(f"{what} is a truth value of {value}, neither 0 nor 1")
        return bool(value)
    result: int | float = value
    return result


def _read_array(cursor: Cursor, what: str) -> Value:
    type_number = cursor.uint32(what)
    if type_number == _ARRAY:
        cursor.fail(f"{what} is an array of arrays, which GGUF readers do not take")
    if type_number == _STRING:
        return cursor.strings(cursor.count(f"the length of {what}", 8), what)
    if type_number not in _SCALARS:
        cursor.fail(f"{what} is an array of the unknown type {type_number}")
    dtype = _SCALARS[type_number]
    return cursor.numbers(dtype, cursor.count(f"the length of {what}", np.dtype(dtype).itemsize), what)
