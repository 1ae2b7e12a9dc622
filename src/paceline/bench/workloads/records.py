"""The records of a file: a JSON object a line, or the elements of one JSON array. What is neither is a Problem.

A file of lines is read line by line and bad lines cost nothing but themselves. An array is read as a whole, and ends
where its JSON breaks.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from paceline.bench.base import Problem
from paceline.bench.workloads.base import Record
from paceline.errors import UsageError

MAX_SIZE = 16 << 20
"""Bytes of a line, or characters of an element."""
BOM = b"\xef\xbb\xbf"
WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
SPACE = " \t\r\n"


def read_records(path: Path) -> Iterator[Record | Problem]:
    """In the order of the file. Raises UsageError for a file that cannot be read or is no text."""
    try:
        with path.open("rb") as file:
            start = file.read(4096)
            if start.startswith(WIDE_BOMS) or b"\0" in start:
                raise UsageError(f"the workload {str(path)!r} is no UTF-8 text; expected jsonl or JSON, as UTF-8")
            file.seek(len(BOM) if start.startswith(BOM) else 0)
            if start.removeprefix(BOM).lstrip().startswith(b"["):
                yield from _elements(file.read().decode("utf-8", "surrogateescape"))
            else:
                yield from _lines(file)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"the workload {str(path)!r} cannot be read: {reason}; give a file, or 'builtin'") from error


def _lines(file: BinaryIO) -> Iterator[Record | Problem]:
    number = 0
    while line := file.readline(MAX_SIZE + 1):
        number += 1
        if len(line) > MAX_SIZE:
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_SIZE)
            yield Problem(number, f"longer than the {MAX_SIZE >> 20} MiB that a line may have")
        elif line.strip():
            yield _parsed(line, number)


def _parsed(line: bytes, number: int) -> Record | Problem:
    try:
        return Record(number, json.loads(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        return Problem(number, f"no valid UTF-8: byte {error.start + 1} of the line is 0x{line[error.start]:02x}")
    except json.JSONDecodeError as error:
        return Problem(number, f"no JSON: {error.msg}, at character {error.pos + 1} of the line")
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or brackets as deep
        return Problem(number, f"no JSON that can be read: {error}")


def _elements(text: str) -> Iterator[Record | Problem]:
    """The elements of the array that `text` holds. The cursor's line goes with it, so lines are counted once."""
    scan = json.JSONDecoder().raw_decode
    cursor = _Cursor(text)
    cursor.skip()
    element = 0
    while element == 0 or cursor.character == ",":
        cursor.step()
        if element == 0 and cursor.character == "]":
            break
        element += 1
        start, line = cursor.at, cursor.line
        try:
            value, end = scan(text, start)
        except json.JSONDecodeError as error:
            yield Problem(
                error.lineno, f"no JSON in element {element} of the array: {error.msg}; nothing behind is read"
            )
            return
        except (ValueError, RecursionError) as error:
            yield Problem(
                line, f"no JSON that can be read in element {element} of the array: {error}; nor what follows"
            )
            return
        if end - start > MAX_SIZE:
            yield Problem(line, f"element {element} of the array is longer than {MAX_SIZE >> 20} Mi characters")
        else:
            yield Record(line, value, element)
        cursor.move(end)
    yield from _end(cursor)


def _end(cursor: "_Cursor") -> Iterator[Problem]:
    """What is wrong behind the last element."""
    if cursor.character != "]":
        yield Problem(cursor.line, f"the array breaks off: found {cursor.character!r}, expected ',' or ']'")
        return
    cursor.step()
    if cursor.character:
        yield Problem(cursor.line, f"found {cursor.character!r} behind the end of the array; nothing behind it is read")


class _Cursor:
    """A place in a text, at no space, and its line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self.line = 1

    @property
    def character(self) -> str:
        """Empty at the end."""
        return self._text[self.at : self.at + 1]

    def step(self) -> None:
        self.move(self.at + 1)

    def skip(self) -> None:
        self.move(self.at)

    def move(self, at: int) -> None:
        """To the first character from `at` on that is no space."""
        while at < len(self._text) and self._text[at] in SPACE:
            at += 1
        self.line += self._text.count("\n", self.at, at)
        self.at = at
