"""Text that knows which of its characters the template wrote itself.

Only those may be part of a special token. A `Text` is a `str` with such marks; a plain `str` has none, whoever made it.
So an operation that carries no marks along can lose a special token of the template, and never lets a user write one.
"""

from collections.abc import Iterable, Sequence
from typing import Literal


class Text(str):
    """A text some or all of whose characters are the template's own."""

    __slots__ = ("marks",)
    marks: bytes | None
    """1 for each character that is the template's own, 0 for others; None where all of them are."""


def own(text: str) -> Text:
    """A text that is the template's own."""
    result = Text(text)
    result.marks = None
    return result


def marks(text: str) -> bytes:
    """1 for each character that is the template's own, else 0."""
    if not isinstance(text, Text):
        return bytes(len(text))
    return b"\1" * len(text) if text.marks is None else text.marks


def is_own(text: str) -> bool:
    return isinstance(text, Text) and text.marks is None


def concat(pieces: Sequence[str]) -> str:
    joined = "".join(pieces)
    if all(map(is_own, pieces)):
        return own(joined)
    if not any(isinstance(piece, Text) for piece in pieces):
        return joined
    return _marked(joined, b"".join(map(marks, pieces)))


def alike(result: str, *sources: object) -> str:
    """`result`, the template's own if all of the texts that it was made of are."""
    return own(result) if all(is_own(source) for source in sources if isinstance(source, str)) else result


def cut(text: str, part: slice) -> str:
    plain = str.__getitem__(text, part)
    if not isinstance(text, Text):
        return plain
    return own(plain) if text.marks is None else _marked(plain, text.marks[part])


def repeat(text: str, count: int) -> str:
    plain = str.__mul__(text, count)
    if not isinstance(text, Text):
        return plain
    return own(plain) if text.marks is None else _marked(plain, text.marks * count)


def strip(text: str, characters: str | None = None, side: Literal["both", "left", "right"] = "both") -> str:
    start = 0 if side == "right" else len(text) - len(text.lstrip(characters))
    stop = len(text) if side == "left" else len(text.rstrip(characters))
    return cut(text, slice(start, max(start, stop)))


def split(text: str, separator: str | None, limit: int, *, is_from_right: bool = False) -> list[str]:
    plain = text.rsplit(separator, limit) if is_from_right else text.split(separator, limit)
    return _located(text, plain, len(separator or ""))


def split_lines(text: str, keep_ends: bool = False) -> list[str]:
    ends = _located(text, text.splitlines(keepends=True), 0)
    if keep_ends:
        return ends
    return [cut(line, slice(0, len(plain))) for line, plain in zip(ends, text.splitlines(), strict=True)]


def replace(text: str, old: str, new: str, count: int) -> str:
    if not old:
        return alike(str.replace(text, old, new, count), text, new)
    pieces: list[str] = []
    for piece in split(text, old, count):
        pieces += [piece, new]
    return concat(pieces[:-1])


def spans(text: str) -> Iterable[tuple[bool, str]]:
    """The runs of characters that are the template's own, and those that are not, in order."""
    flags = marks(text)
    start = 0
    while start < len(text):
        is_own_run = flags[start] == 1
        stop = flags.find(b"\0" if is_own_run else b"\1", start)
        stop = len(text) if stop < 0 else stop
        yield is_own_run, str.__getitem__(text, slice(start, stop))
        start = stop


def _located(text: str, parts: list[str], gap: int) -> list[str]:
    """Parts of a text in order, `gap` characters of something else between, with their marks."""
    if not isinstance(text, Text):
        return parts
    located, position = [], 0
    for part in parts:
        start = text.index(part, position)  # only blanks lie between, where it is not `position` itself
        located.append(cut(text, slice(start, start + len(part))))
        position = start + len(part) + gap
    return located


def _marked(text: str, flags: bytes) -> str:
    if b"\1" not in flags:
        return text
    result = Text(text)
    result.marks = flags if b"\0" in flags else None
    return result
