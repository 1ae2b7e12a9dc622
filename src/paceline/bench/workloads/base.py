"""The contract of a workload format: what one record of a file means.

A file is UTF-8 text, with or without a byte order mark, with Unix or Windows line ends. It holds records, JSON objects:
one a line, or all in one JSON array. Blank lines mean nothing. `records` reads either; a format turns one record into
an `Item` and knows nothing of files. A record that holds no item raises `RecordError`, which becomes a `Problem` with
the record's line.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from paceline.bench.base import Item

DEFAULT_CLASS = "default"
"""The task class of items whose file names none."""


class RecordError(ValueError):
    """A record holds no item; the message says what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class Record:
    """`value`: what JSON made of it, of whatever type. `line`: where it begins, from 1. `element`: its place in the
    file's array, from 1; None in a file of lines."""

    line: int
    value: Any
    element: int | None = None

    @property
    def name(self) -> str:
        """Unique in the file: the id of an item whose record has none."""
        return f"line-{self.line}" if self.element is None else f"element-{self.element}"

    def describe(self, message: str) -> str:
        """`message`, with the place in the array, whose line may be one for all."""
        return message if self.element is None else f"element {self.element} of the array: {message}"


class Format(ABC):
    """A way to write a workload down. One instance reads one file, from its first record to its last."""

    name: ClassVar[str]
    looks_like: ClassVar[str]
    """A record, for messages to people who have something else."""

    @classmethod
    @abstractmethod
    def recognises(cls, keys: frozenset[str]) -> bool:
        """Whether a record with these keys is likely one of this format. Formats are asked in the registry's order."""

    @abstractmethod
    def item(self, fields: Mapping[str, Any], name: str) -> Item:
        """The item of a record; `name` is its id if the record has none. Raises RecordError."""
