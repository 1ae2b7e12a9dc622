"""The repetition penalty: tokens of the prompt and of the answer become less likely, however often they occurred.

Keskar et al., "CTRL" (arXiv:1909.05858), with the usual correction for logits below zero: those are multiplied, so that
a penalty lowers them too.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.processors.base import Edit
from paceline.acceptance.processors.counts import TokenCounts

_LARGEST = float(np.finfo(np.float32).max)


class RepetitionPenalty(Edit):
    """Divides logits above zero by `penalty` and multiplies the others by it, in float64. What leaves the range of
    float32 stays at its end: no penalty bans a token.
    """

    def __init__(self, penalty: float, prompt: Sequence[int]) -> None:
        self._penalty = penalty
        self._counts = TokenCounts(prompt)

    def extend(self, tokens: Sequence[int]) -> None:
        self._counts.extend(tokens)

    def is_active(self, drafted: Sequence[int]) -> bool:
        return len(self._counts) > 0 or len(drafted) > 0

    def apply(self, row: NDArray[np.float32], drafted: Sequence[int]) -> None:
        ids, _ = self._counts.behind(drafted)
        logits = row[ids].astype(np.float64)
        with np.errstate(over="ignore"):
            scaled = np.where(logits > 0, logits / self._penalty, logits * self._penalty)
        row[ids] = np.where(np.isneginf(logits), logits, np.clip(scaled, -_LARGEST, _LARGEST))
