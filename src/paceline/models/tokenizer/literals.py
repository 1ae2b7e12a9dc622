"""Tokens that are found by their names: text is cut at them before anything else happens to it."""

import re
from collections.abc import Collection, Iterator, Mapping

_SPACES = re.compile(r"\s*")


class Literals:
    """Finds names in text: the first one, and of several that begin at one place the longest.

    `left` and `right` are ids whose tokens swallow the white space before or after them.
    """

    def __init__(self, ids: Mapping[str, int], *, left: Collection[int] = (), right: Collection[int] = ()) -> None:
        self._ids = ids
        self._left = frozenset(left)
        self._right = frozenset(right)
        sizes: dict[str, set[int]] = {}
        for name in ids:
            sizes.setdefault(name[0], set()).add(len(name))
        self._sizes = {first: sorted(found, reverse=True) for first, found in sizes.items()}
        self._starts = re.compile(f"[{re.escape(''.join(sizes))}]") if sizes else None

    def split(self, text: str) -> Iterator[str | int]:
        """Non-empty texts and the ids of the names between them, in order."""
        start = 0
        for begin, end, token_id in self._matches(text):
            before = text[start:begin]
            if token_id in self._left:
                before = before.rstrip()
            if before:
                yield before
            yield token_id
            start = end
        if start < len(text):
            yield text[start:]

    def _matches(self, text: str) -> Iterator[tuple[int, int, int]]:
        if self._starts is None:
            return
        position = 0
        while match := self._starts.search(text, position):
            begin = match.start()
            position = begin + 1
            for size in self._sizes[match[0]]:
                token_id = self._ids.get(text[begin : begin + size])
                if token_id is not None:
                    position = begin + size
                    if token_id in self._right:
                        position = _after_spaces(text, position)
                    yield begin, position, token_id
                    break


def _after_spaces(text: str, position: int) -> int:
    match = _SPACES.match(text, position)
    return match.end() if match else position
