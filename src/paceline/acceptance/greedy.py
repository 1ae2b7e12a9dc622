"""The sampler at temperature 0: the most likely token, with no noise."""

import math

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.base import Law, NonFiniteLogitsError


class GreedySampler:
    """The argmax over ids below `vocab_size`, ties to the lowest id. Padding behind them is never looked at."""

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size

    def sample(self, logits: NDArray[np.float32], position: int) -> int:
        row = logits[: self._vocab_size]
        token = int(row.argmax())  # NumPy's argmax is the first NaN where there is one
        if not math.isfinite(row[token]) or not math.isfinite(row.min()):
            raise NonFiniteLogitsError(f"the logits that decide position {position} are not finite")
        return token

    def law(self, logits: NDArray[np.float32]) -> Law:
        p = np.zeros(self._vocab_size)
        p[self.sample(logits, position=0)] = 1.0
        return p
