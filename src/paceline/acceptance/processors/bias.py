"""The logit bias: what a request adds to the logits of some tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.processors.base import Edit


class LogitBias(Edit):
    """Adds each bias, rounded to float32. A bias of -100 makes a token improbable; only a ban makes it impossible."""

    def __init__(self, biases: Sequence[tuple[int, float]]) -> None:
        """`biases`: token ids, each once, and what to add."""
        self._ids = np.array([token for token, _ in biases], np.int64)
        self._biases = np.array([bias for _, bias in biases], np.float32)

    def extend(self, tokens: Sequence[int]) -> None:
        """Nothing here depends on what was emitted."""

    def is_active(self, drafted: Sequence[int]) -> bool:  # noqa: ARG002
        return True

    def apply(self, row: NDArray[np.float32], drafted: Sequence[int]) -> None:  # noqa: ARG002
        row[self._ids] += self._biases
