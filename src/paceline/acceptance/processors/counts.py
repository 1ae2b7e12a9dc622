"""How often each token occurred: told once of every committed token, asked for with a draft's tokens on top."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


class TokenCounts:
    """Grows by what is new; asking costs what the distinct tokens are, not the length of the text."""

    def __init__(self, tokens: Sequence[int] = ()) -> None:
        self._ids, self._counts = np.unique(np.asarray(tokens, np.int64), return_counts=True)
        self._slots = {token: slot for slot, token in enumerate(self._ids.tolist())}

    def extend(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            slot = self._slots.setdefault(token, len(self._slots))
            if slot == len(self._ids):
                self._grow()
            self._ids[slot] = token
            self._counts[slot] += 1

    def behind(self, drafted: Sequence[int]) -> tuple[Ids, Ids]:
        """The distinct tokens, committed or drafted, in no order, and the count of each. Read only."""
        num = len(self._slots)
        ids, counts = self._ids[:num], self._counts[:num]
        if not drafted:
            return ids, counts
        counts, new = counts.copy(), dict[int, int]()
        for token in drafted:
            slot = self._slots.get(token)
            if slot is None:
                new[token] = new.get(token, 0) + 1
            else:
                counts[slot] += 1
        return np.append(ids, np.fromiter(new, np.int64)), np.append(counts, np.fromiter(new.values(), np.int64))

    def __len__(self) -> int:
        return len(self._slots)

    def _grow(self) -> None:
        spare = np.zeros(len(self._ids) + 16, np.int64)
        self._ids, self._counts = np.concatenate((self._ids, spare)), np.concatenate((self._counts, spare))
