"""Words that may not be written: a token that would complete one of their token sequences may not come."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from paceline.acceptance.processors.base import Mask
from paceline.acceptance.processors.bits import Bits, all_but, without
from paceline.errors import UsageError

Encode: TypeAlias = Callable[[str], Sequence[int]]
"""The token ids of a text that continues another one: no BOS or EOS token, no space put before it."""


class BadWords(Mask):
    """Bans the last token of a sequence where the answer, draft included, ends with all those before it. A word of one
    token is banned everywhere. The prompt is not looked at.

    Only the sequences that are given are found: a word can be written with other tokens.
    """

    def __init__(self, sequences: Iterable[Sequence[int]], vocab_size: int) -> None:
        """`sequences`: of at least one token each."""
        single = set[int]()
        self._ends: dict[int, list[tuple[tuple[int, ...], int]]] = {}  # by the newest token: what it may be the end of
        longest = 0
        for sequence in dict.fromkeys(map(tuple, sequences)):
            *prefix, last = sequence
            longest = max(longest, len(prefix))
            if prefix:
                self._ends.setdefault(prefix[-1], []).append((tuple(prefix), last))
            else:
                single.add(last)
        self._longest = longest
        self._has_single = bool(single)
        self._allowed = all_but(single, vocab_size)
        self._tail: tuple[int, ...] = ()  # the newest committed tokens, as many as matter

    def extend(self, tokens: Sequence[int]) -> None:
        self._tail = self._behind(tokens)

    def is_active(self, drafted: Sequence[int]) -> bool:
        return self._has_single or bool(self._completing(drafted))

    def allowed(self, drafted: Sequence[int]) -> Bits:
        completing = self._completing(drafted)
        return without(self._allowed, completing) if completing else self._allowed

    def _behind(self, tokens: Sequence[int]) -> tuple[int, ...]:
        text = (*self._tail, *tokens)
        return text[max(0, len(text) - self._longest) :]

    def _completing(self, drafted: Sequence[int]) -> list[int]:
        """The tokens that would complete a word of several."""
        text = self._behind(drafted)
        ends = self._ends.get(text[-1], ()) if text else ()
        return [last for prefix, last in ends if text[-len(prefix) :] == prefix]


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
