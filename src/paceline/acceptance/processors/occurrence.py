"""The presence and frequency penalties: tokens of the answer become less likely. The prompt's own do not count."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.processors.base import Edit
from paceline.acceptance.processors.counts import TokenCounts


class OccurrencePenalties(Edit):
    """Subtracts `presence` + `frequency` · count, in float64 and rounded once, from the tokens of the answer."""

    def __init__(self, presence: float, frequency: float) -> None:
        self._presence = presence
        self._frequency = frequency
        self._counts = TokenCounts()

    def extend(self, tokens: Sequence[int]) -> None:
        self._counts.extend(tokens)

    def is_active(self, drafted: Sequence[int]) -> bool:
        return len(self._counts) > 0 or len(drafted) > 0

    def apply(self, row: NDArray[np.float32], drafted: Sequence[int]) -> None:
        ids, counts = self._counts.behind(drafted)
        row[ids] -= (self._presence + self._frequency * counts).astype(np.float32)
