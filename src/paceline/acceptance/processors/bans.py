"""Tokens that may never come, and tokens that alone may come."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.processors.base import BANNED, Mask


class BannedTokens(Mask):
    """Bans `tokens`: those that only fill the vocabulary up, for one."""

    def __init__(self, tokens: Iterable[int]) -> None:
        self._tokens = frozenset(tokens)
        self._ids = np.array(sorted(self._tokens), np.int64)

    def extend(self, tokens: Sequence[int]) -> None:
        """Nothing here depends on what was emitted."""

    def is_active(self, drafted: Sequence[int]) -> bool:  # noqa: ARG002
        return True

    def allows(self, token: int, drafted: Sequence[int]) -> bool:  # noqa: ARG002
        return token not in self._tokens

    def apply(self, row: NDArray[np.float32], drafted: Sequence[int]) -> None:  # noqa: ARG002
        row[self._ids] = BANNED


class AllowedTokens(Mask):
    """Bans all but `tokens`."""

    def __init__(self, tokens: Iterable[int]) -> None:
        self._tokens = frozenset(tokens)
        self._ids = np.array(sorted(self._tokens), np.int64)

    def extend(self, tokens: Sequence[int]) -> None:
        """Nothing here depends on what was emitted."""

    def is_active(self, drafted: Sequence[int]) -> bool:  # noqa: ARG002
        return True

    def allows(self, token: int, drafted: Sequence[int]) -> bool:  # noqa: ARG002
        return token in self._tokens

    def apply(self, row: NDArray[np.float32], drafted: Sequence[int]) -> None:  # noqa: ARG002
        kept = row[self._ids]
        row.fill(BANNED)
        row[self._ids] = kept
