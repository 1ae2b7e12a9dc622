"""The sampler at temperature 0: the most likely token, with no noise."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from paceline._native import search_row
from paceline.acceptance.base import Law, NonFiniteLogitsError


class GreedySampler:
    """The argmax over ids below `vocab_size` that are not `banned`, ties to the lowest id.

    Padding behind `vocab_size` is never looked at. Raises ValueError where every id is banned.
    """

    def __init__(self, vocab_size: int, banned: Iterable[int] = ()) -> None:
        self._vocab_size = vocab_size
        self._banned = frozenset(token for token in banned if token < vocab_size)
        if len(self._banned) == vocab_size:
            raise ValueError(f"all {vocab_size} token ids are banned")

    def sample(self, logits: NDArray[np.float32], position: int) -> int:
        token = search_row(logits, self._vocab_size)
        if token < 0:
            raise NonFiniteLogitsError(f"the logits that decide position {position} are not finite")
        if token in self._banned:  # rare: only then is a row worth copying
            row = logits[: self._vocab_size].copy()
            row[list(self._banned)] = -np.inf
            token = int(row.argmax())
        return token

    def law(self, logits: NDArray[np.float32]) -> Law:
        p = np.zeros(self._vocab_size)
        p[self.sample(logits, position=0)] = 1.0
        return p
