"""GGUF files taken apart and put together again, to damage them in ways that bytes changed at random never would.

Shares nothing with the reader under test. It trusts its input: taking apart what is not sound raises `struct.error`,
`KeyError` or `ValueError`.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

STRING, ARRAY = 8, 9
WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of each scalar type by number."""
_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class Pair:
    """One metadata pair; `value` as it stands in the file."""

    key: bytes
    kind: int
    value: bytes

    def encoded(self) -> bytes:
        return text(self.key) + struct.pack("<I", self.kind) + self.value


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table of tensors, its offset counted from the start of the data."""

    name: bytes
    dims: tuple[int, ...]
    kind: int
    offset: int

    def encoded(self) -> bytes:
        return text(self.name) + struct.pack(
            f"<I{len(self.dims)}QIQ", len(self.dims), *self.dims, self.kind, self.offset
        )


@dataclass(frozen=True, slots=True)
class Parts:
    """A whole file. Counts that are None are the true ones."""

    pairs: tuple[Pair, ...]
    rows: tuple[Row, ...]
    data: bytes
    version: int = 3
    num_pairs: int | None = None
    num_rows: int | None = None

    def encoded(self) -> bytes:
        head = b"".join(self.pieces())
        return head + bytes(-len(head) % _ALIGNMENT) + self.data

    def pieces(self) -> Iterator[bytes]:
        """The header in its sections: magic, version, the two counts, each pair, each row."""
        yield b"GGUF"
        yield struct.pack("<I", self.version)
        yield struct.pack("<Q", len(self.rows) if self.num_rows is None else self.num_rows)
        yield struct.pack("<Q", len(self.pairs) if self.num_pairs is None else self.num_pairs)
        yield from (pair.encoded() for pair in self.pairs)
        yield from (row.encoded() for row in self.rows)

    def borders(self) -> list[int]:
        """Where each section ends and the data and each tensor begin, in bytes from the start of the file."""
        ends, position = [], 0
        for piece in self.pieces():
            position += len(piece)
            ends.append(position)
        start = position + -position % _ALIGNMENT
        return sorted({*ends, *(start + row.offset for row in self.rows)})

    def without(self, key: bytes) -> "Parts":
        return replace(self, pairs=tuple(pair for pair in self.pairs if pair.key != key))

    def with_pair(self, changed: Pair) -> "Parts":
        """The pair of that key replaced, or added at the end where there is none."""
        if all(pair.key != changed.key for pair in self.pairs):
            return replace(self, pairs=(*self.pairs, changed))
        return replace(self, pairs=tuple(changed if pair.key == changed.key else pair for pair in self.pairs))


def text(raw: bytes) -> bytes:
    return struct.pack("<Q", len(raw)) + raw


def array(kind: int, count: int, items: bytes) -> bytes:
    return struct.pack("<IQ", kind, count) + items


def take_apart(content: bytes) -> Parts:
    reader = _Reader(content)
    magic, version, num_rows, num_pairs = reader.unpack("<4sIQQ")
    if magic != b"GGUF":
        raise ValueError("no GGUF file")
    pairs = tuple(reader.pair() for _ in range(num_pairs))
    rows = tuple(reader.row() for _ in range(num_rows))
    start = reader.position + -reader.position % _ALIGNMENT
    return Parts(pairs, rows, content[start:], version)


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0

    def unpack(self, form: str) -> tuple:  # type: ignore[type-arg]
        values = struct.unpack_from(form, self.content, self.position)
        self.position += struct.calcsize(form)
        return values

    def text(self) -> bytes:
        (size,) = self.unpack("<Q")
        (raw,) = self.unpack(f"<{min(size, len(self.content) + 1)}s")
        return bytes(raw)

    def pair(self) -> Pair:
        key, (kind,), start = self.text(), self.unpack("<I"), 0
        start = self.position
        self._skip(kind)
        return Pair(key, kind, self.content[start : self.position])

    def row(self) -> Row:
        name, (num_dims,) = self.text(), self.unpack("<I")
        dims = self.unpack(f"<{min(num_dims, len(self.content))}Q")
        return Row(name, dims, *self.unpack("<IQ"))

    def _skip(self, kind: int) -> None:
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            inner, count = self.unpack("<IQ")
            if inner == STRING:
                for _ in range(count):
                    self.text()
            else:
                self.position += WIDTHS[inner] * count
        else:
            self.position += WIDTHS[kind]
