"""The least length of an answer: what would end it may not come before."""

from collections.abc import Iterable, Sequence

from paceline.acceptance.processors.base import Mask
from paceline.acceptance.processors.bits import Bits, all_but


class MinTokens(Mask):
    """Bans `stop_ids` as long as the answer, draft included, has fewer than `min_tokens` tokens."""

    def __init__(self, min_tokens: int, stop_ids: Iterable[int], vocab_size: int) -> None:
        self._num_left = min_tokens
        self._allowed = all_but(stop_ids, vocab_size)

    def extend(self, tokens: Sequence[int]) -> None:
        self._num_left -= len(tokens)

    def is_active(self, drafted: Sequence[int]) -> bool:
        return len(drafted) < self._num_left

    def allowed(self, drafted: Sequence[int]) -> Bits:  # noqa: ARG002 (asked only where it is active)
        return self._allowed
