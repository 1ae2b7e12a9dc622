"""Words that may not be written: a token that would complete one of their token sequences may not come."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.processors.base import BANNED, Mask
from paceline.errors import UsageError

Encode = Callable[[str], Sequence[int]]
"""The token ids of a text that continues another one: no BOS or EOS token, no space put before it."""


class BadWords(Mask):
    """Bans the last token of a sequence where the answer, draft included, ends with all those before it. A word of one
    token is banned everywhere. The prompt is not looked at.

    Only the sequences that are given are found: a word can be written with other tokens.
    """

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        """`sequences`: of at least one token each."""
        self._always = set[int]()
        self._by_last: dict[int, list[tuple[tuple[int, ...], int]]] = {}  # from the newest token to what it may end
        longest = 0
        for sequence in dict.fromkeys(map(tuple, sequences)):
            *prefix, last = sequence
            longest = max(longest, len(prefix))
            if prefix:
                self._by_last.setdefault(prefix[-1], []).append((tuple(prefix), last))
            else:
                self._always.add(last)
        self._longest = longest
        self._tail: tuple[int, ...] = ()  # the newest committed tokens, as many as matter

    def extend(self, tokens: Sequence[int]) -> None:
        self._tail = self._behind(tokens)

    def is_active(self, drafted: Sequence[int]) -> bool:
        return bool(self._banned(drafted))

    def allows(self, token: int, drafted: Sequence[int]) -> bool:
        return token not in self._banned(drafted)

    def apply(self, row: NDArray[np.float32], drafted: Sequence[int]) -> None:
        row[list(self._banned(drafted))] = BANNED

    def _behind(self, tokens: Sequence[int]) -> tuple[int, ...]:
        text = (*self._tail, *tokens)
        return text[max(0, len(text) - self._longest) :]

    def _banned(self, drafted: Sequence[int]) -> set[int]:
        text = self._behind(drafted)
        words = self._by_last.get(text[-1]) if text else None
        if not words:
            return self._always
        return self._always.union(last for prefix, last in words if text[-len(prefix) :] == prefix)


def bad_word_sequences(words: Iterable[str], encode: Encode) -> list[tuple[int, ...]]:
    """Both spellings of every word, at the beginning of a text and behind a space. Raises UsageError for a word that no
    token stands for."""
    sequences = dict[tuple[int, ...], None]()
    for word in words:
        bare = word.lstrip(" ")
        spelled = [tuple(encode(each)) for each in ((bare, " " + bare) if bare else (word,))]
        if not spelled[0]:
            raise UsageError(f"bad_words holds {word!r:.100}, which this model has no tokens for; leave it out")
        sequences.update(dict.fromkeys(each for each in spelled if each))
    return list(sequences)
