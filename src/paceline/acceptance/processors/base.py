"""The contract of a logits processor: what a sampling parameter does to one row, given what stands before the row.

Every sequence has processors of its own. `extend` tells them of committed tokens, and each call for a row names the
`drafted` tokens between the newest committed one and the row. The rule for both: a row with `drafted` is processed as
it would be after `extend(drafted)`, to the bit. So a row of a chain or of a tree is drawn from as plain decoding draws.

There are two kinds. An `Edit` changes logits and may ban, a `Mask` only bans. Masks come behind all edits, and their
order among themselves does not matter.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.processors.bits import Bits, is_set


class _Processor(ABC):
    @abstractmethod
    def extend(self, tokens: Sequence[int]) -> None:
        """Committed tokens of the answer, in order: they count from here on."""

    @abstractmethod
    def is_active(self, drafted: Sequence[int]) -> bool:
        """Whether a row behind `drafted` could be changed. Cheap: where nothing is active, nothing is copied. The other
        methods are called only where it is True.
        """


class Edit(_Processor):
    """Adds to logits, scales them or sets them to minus infinity, never to NaN or plus infinity."""

    @abstractmethod
    def apply(self, row: NDArray[np.float32], drafted: Sequence[int]) -> None:
        """Edit the row behind `drafted` in place: float32 `[vocabulary]` without padding."""


class Mask(_Processor):
    """Bans tokens."""

    @abstractmethod
    def allowed(self, drafted: Sequence[int]) -> Bits:
        """The tokens that may come behind `drafted` (`paceline.acceptance.processors.bits`). Read only for the caller,
        and good until the next call."""

    def allows(self, token: int, drafted: Sequence[int]) -> bool:
        """Whether `token` is one of them. Worth a shorter way where that is cheaper than all of them: the most likely
        token is nearly always legal."""
        return is_set(self.allowed(drafted), token)


LogitsProcessor: TypeAlias = Edit | Mask
