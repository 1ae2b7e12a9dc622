"""What one rendering of a chat template may cost: steps, and bytes made.

Both are counted, not measured, so that the same template with the same messages stops at the same place everywhere.
Every part of a template that is evaluated is a step; so are so many characters read or written, and so many items of
a list. Bytes are what texts, lists and mappings would take if all were kept. Costs are charged before the work is done.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_STEPS = 100_000  # some tenths of a second of this interpreter
_STEPS_A_VALUE = 200  # of the messages and tools: a message has three and takes a template a hundred steps
_CHARACTERS_A_STEP = 256  # read
_BYTES_A_STEP = 1024  # made
_BYTES = 48 << 20
_BYTES_A_CHARACTER = 100  # of the messages and tools: their text is copied ten or twenty times on its way
_SHORT_SEARCH = 30_000  # characters from which on Python's search is linear whatever it looks for
_MAX_DEPTH = 24  # macros and recursive loops in each other
_MAX_BITS = 256  # of a whole number
LIST_BYTES = 64
ITEM_BYTES = 8
ENTRY_BYTES = 100  # of a mapping


class TemplateLimitError(Exception):
    """A template asked for more than a rendering may cost, or for what no chat template may do."""


class Budget:
    """What is left of both. `steps` and `num_bytes` say what was used."""

    def __init__(self, num_characters: int, num_values: int, *, steps: int = _STEPS) -> None:
        """For messages and tools with so many characters in so many values: they are no fault of the template."""
        self.steps = 0
        self.num_bytes = 0
        self.max_steps = steps + _STEPS_A_VALUE * num_values + num_characters // 4
        self.max_bytes = _BYTES + _BYTES_A_CHARACTER * num_characters
        self._depth = 0

    def step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > self.max_steps:
            raise TemplateLimitError(f"it takes more than {self.max_steps} steps")

    def read(self, num_characters: int) -> None:
        self.step(num_characters // _CHARACTERS_A_STEP)

    def search(self, num_characters: int, num_searched: int, *, is_backwards: bool = False) -> None:
        """For looking for one text in another, which Python does in linear time where the other is long, and only
        forwards."""
        if is_backwards or num_characters < _SHORT_SEARCH:
            self.read(num_characters * (num_searched // 8 + 1))
        else:
            self.read(4 * num_characters + num_searched)

    def make(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes
        if self.num_bytes > self.max_bytes:
            raise TemplateLimitError(f"it makes more than {self.max_bytes >> 20} MiB of text and lists")
        self.step(num_bytes // _BYTES_A_STEP)

    def write(self, texts: Iterable[str], times: int = 1) -> None:
        """For a text put together from others."""
        size, width = 0, 2  # a byte a character, and one more for what is known of its origin
        for text in texts:
            size += len(text)
            if not text.isascii():
                width = 5
        self.make(size * width * max(times, 0))

    def make_list(self, num_items: int) -> None:
        self.make(LIST_BYTES + ITEM_BYTES * num_items)

    @contextmanager
    def level(self) -> Iterator[None]:
        """Around what a macro or a recursive loop does."""
        if self._depth == _MAX_DEPTH:
            raise TemplateLimitError(f"its macros and loops nest deeper than {_MAX_DEPTH}")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1


def check_bits(num_bits: int) -> None:
    """Raise `TemplateLimitError` for a whole number of so many bits."""
    if num_bits > _MAX_BITS:
        raise TemplateLimitError(f"it computes whole numbers of more than {_MAX_BITS} bits")
