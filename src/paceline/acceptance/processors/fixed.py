"""Tokens that may never come, whatever stands before."""

from collections.abc import Sequence

from paceline.acceptance.processors.base import Mask
from paceline.acceptance.processors.bits import Bits


class FixedMask(Mask):
    """Always the same `allowed` tokens: those of `allowed_token_ids`, and never those that only fill the vocabulary."""

    def __init__(self, allowed: Bits) -> None:
        self._allowed = allowed

    def extend(self, tokens: Sequence[int]) -> None:
        """Nothing here depends on what was emitted."""

    def is_active(self, drafted: Sequence[int]) -> bool:  # noqa: ARG002
        return True

    def allowed(self, drafted: Sequence[int]) -> Bits:  # noqa: ARG002
        return self._allowed
