"""The sampler at temperature 0: the most likely token, with no noise."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from paceline._native import search_row
from paceline.acceptance.base import Law, NonFiniteLogitsError


class GreedySampler:
    """The argmax over ids below `vocab_size` that are not `banned`, ties to the lowest id. At the absolute positions
    below `num_early_positions`, `early_banned` are banned too: what may end a text is not drawn there.

    Padding behind `vocab_size` is never looked at. Raises ValueError where every id is banned at some position.
    """

    def __init__(
        self,
        vocab_size: int,
        banned: Iterable[int] = (),
        *,
        early_banned: Iterable[int] = (),
        num_early_positions: int = 0,
    ) -> None:
        self._vocab_size = vocab_size
        self._num_early = num_early_positions
        self._banned = frozenset(token for token in banned if token < vocab_size)
        self._early_banned = self._banned.union(token for token in early_banned if token < vocab_size)
        if len(self._early_banned if num_early_positions > 0 else self._banned) == vocab_size:
            raise ValueError(f"all {vocab_size} token ids are banned")

    @property
    def seed(self) -> int:
        """Of no noise: at temperature 0 there is none."""
        return 0

    def extend(self, tokens: Sequence[int]) -> None:
        """Nothing here depends on what was emitted."""

    def sample(self, logits: NDArray[np.float32], position: int, drafted: Sequence[int] = ()) -> int:  # noqa: ARG002
        token = search_row(logits, self._vocab_size)
        if token < 0:
            raise NonFiniteLogitsError(f"the logits that decide position {position} are not finite")
        banned = self._banned if position >= self._num_early else self._early_banned
        if token in banned:  # rare: only then is a row worth copying
            row = logits[: self._vocab_size].copy()
            row[list(banned)] = -np.inf
            token = int(row.argmax())
        return token

    def law(self, logits: NDArray[np.float32], position: int, drafted: Sequence[int] = ()) -> Law:
        p = np.zeros(self._vocab_size)
        p[self.sample(logits, position, drafted)] = 1.0
        return p
