"""Where stop strings begin and end in text that comes in pieces, as UTF-8 bytes.

Bytes, because a token may end within a character. A stop string that is to be completed later begins in the open end of
the text, the longest end with which one may begin; so whoever keeps the open end of what came needs nothing before it.
"""

from bisect import bisect_right
from collections.abc import Iterable

from paceline.value import value


@value
class CompletedStop:
    """`begin`: where in the text that was looked at the stop string's first byte stands."""

    begin: int
    text: str


class StopBytes:
    """Some stop strings, none of them empty. Immutable, and cheap to make."""

    def __init__(self, stops: Iterable[str]) -> None:
        by_bytes = {stop.encode(): stop for stop in stops}
        if not all(by_bytes):
            raise ValueError("a stop string is empty")
        self._sorted = sorted(by_bytes)
        self._longest_first = sorted(by_bytes.items(), key=lambda pair: -len(pair[0]))
        self._max_open = max(map(len, by_bytes), default=1) - 1
        self._first_bytes = frozenset(stop[0] for stop in by_bytes)
        self._last_bytes = frozenset(stop[-1] for stop in by_bytes)

    def completed(self, text: bytes, end: int) -> CompletedStop | None:
        """Of the stop strings whose last byte stands at `end` or behind it, the one that begins first, the longest of
        those."""
        if self._last_bytes.isdisjoint(text[end:]):
            return None
        found: CompletedStop | None = None
        for stop, name in self._longest_first:
            begin = text.find(stop, max(0, end - len(stop) + 1))
            if begin >= 0 and (found is None or begin < found.begin):
                found = CompletedStop(begin, name)
        return found

    def num_open(self, text: bytes) -> int:
        """How many bytes at the end of `text` may be the beginning of a stop string that is not complete: the most."""
        if self._first_bytes.isdisjoint(text):
            return 0
        for begin in range(max(0, len(text) - self._max_open), len(text)):
            if text[begin] in self._first_bytes:
                rest = text[begin:]
                where = bisect_right(self._sorted, rest)  # what begins with `rest` and goes on sorts right behind it
                if where < len(self._sorted) and self._sorted[where].startswith(rest):
                    return len(rest)
        return 0
