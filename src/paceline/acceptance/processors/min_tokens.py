"""The least length of an answer: what would end it may not come before."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.processors.base import BANNED, Mask


class MinTokens(Mask):
    """Bans `stop_ids` as long as the answer, draft included, has fewer than `min_tokens` tokens."""

    def __init__(self, min_tokens: int, stop_ids: Iterable[int]) -> None:
        self._num_left = min_tokens
        self._stop_ids = frozenset(stop_ids)
        self._ids = np.array(sorted(self._stop_ids), np.int64)

    def extend(self, tokens: Sequence[int]) -> None:
        self._num_left -= len(tokens)

    def is_active(self, drafted: Sequence[int]) -> bool:
        return len(drafted) < self._num_left

    def allows(self, token: int, drafted: Sequence[int]) -> bool:  # noqa: ARG002 (asked only where it is active)
        return token not in self._stop_ids

    def apply(self, row: NDArray[np.float32], drafted: Sequence[int]) -> None:  # noqa: ARG002
        row[self._ids] = BANNED
