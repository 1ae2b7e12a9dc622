"""Byte-pair merging: of the neighbouring symbols that may be joined, always the pair of the lowest rank, until none is.

Knows neither bytes nor characters. Its ids equal those of the `tokenizers` library's BPE, which needs a second or two
to take in the merges of a large vocabulary, where this needs a dictionary.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush

_CACHED_WORDS = 1 << 16
_MAX_CACHED_CHARACTERS = 64
_FEW_SYMBOLS = 24  # up to here looking at all pairs each time costs less than a heap


class PairMerger:
    """Turns words into ids.

    `ranks`: for "left" + `separator` + "right" the rank of that pair. `unmerged`: the ids of a symbol that is no token.
    With `keeps_words` a word that is a token is taken as it is, whatever the merges would make of it.
    """

    def __init__(
        self,
        ids: Mapping[str, int],
        ranks: Mapping[str, float],
        separator: str,
        unmerged: Callable[[str], Sequence[int]],
        *,
        keeps_words: bool = False,
    ) -> None:
        self._ids = ids
        self._ranks = ranks
        self._separator = separator
        self._unmerged = unmerged
        self._keeps_words = keeps_words
        self._cached = lru_cache(_CACHED_WORDS)(self._encode)

    def __call__(self, word: str) -> Sequence[int]:
        return self._cached(word) if len(word) <= _MAX_CACHED_CHARACTERS else self._encode(word)

    def _encode(self, word: str) -> Sequence[int]:
        ids = self._ids
        if (self._keeps_words or len(word) == 1) and word in ids:
            return (ids[word],)
        merge = self._merge_few if len(word) <= _FEW_SYMBOLS else self._merge_many
        found: list[int] = []
        for symbol in merge(list(word)):
            token_id = ids.get(symbol)
            if token_id is not None:
                found.append(token_id)
            else:
                found += self._unmerged(symbol)
        return tuple(found)

    def _merge_few(self, symbols: list[str]) -> list[str]:
        ranks, separator = self._ranks, self._separator
        while len(symbols) > 1:
            best = None
            for index in range(len(symbols) - 1):
                rank = ranks.get(symbols[index] + separator + symbols[index + 1])
                if rank is not None and (best is None or rank < best[0]):
                    best = rank, index
            if best is None:
                break
            index = best[1]
            symbols[index : index + 2] = [symbols[index] + symbols[index + 1]]
        return symbols

    def _merge_many(self, symbols: list[str]) -> list[str]:
        """The same with a heap of pairs. A merged symbol takes its left part's place; the right part's stays empty."""
        ranks, separator = self._ranks, self._separator
        after = [*range(1, len(symbols)), -1]
        before = [*range(-1, len(symbols) - 1)]
        heap = []
        for index in range(len(symbols) - 1):
            rank = ranks.get(symbols[index] + separator + symbols[index + 1])
            if rank is not None:
                heap.append((rank, index, symbols[index], symbols[index + 1]))
        heapify(heap)
        while heap:
            _, left, left_symbol, right_symbol = heappop(heap)
            right = after[left]
            if right < 0 or symbols[left] != left_symbol or symbols[right] != right_symbol:
                continue  # one of the two has been merged since
            symbols[left] += right_symbol
            symbols[right] = ""
            following, previous = after[right], before[left]
            after[left] = following
            if following >= 0:
                before[following] = left
                rank = ranks.get(symbols[left] + separator + symbols[following])
                if rank is not None:
                    heappush(heap, (rank, left, symbols[left], symbols[following]))
            if previous >= 0:
                rank = ranks.get(symbols[previous] + separator + symbols[left])
                if rank is not None:
                    heappush(heap, (rank, previous, symbols[previous], symbols[left]))
        return [symbol for symbol in symbols if symbol]
