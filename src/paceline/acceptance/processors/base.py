"""The contract of a logits processor: what a sampling parameter does to one row, given what stands before the row.

Every sequence has processors of its own. `extend` tells them of committed tokens, and each call for a row names the
`drafted` tokens between the newest committed one and the row. The rule for both: a row with `drafted` is processed as
it would be after `extend(drafted)`, to the bit. So a row of a chain or of a tree is drawn from as plain decoding draws.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.base import NonFiniteLogitsError

BANNED = np.float32(-np.inf)  # the logit of a token that may not come


class AllTokensBannedError(NonFiniteLogitsError):
    """The processors left no token: every logit of the processed row is minus infinity."""


class LogitsProcessor(ABC):
    """Edits rows of logits, float32 `[vocabulary]` without padding: adds, scales or sets to BANNED, never to NaN or
    plus infinity. What is BANNED already stays so, unless a processor says otherwise.
    """

    @abstractmethod
    def extend(self, tokens: Sequence[int]) -> None:
        """Committed tokens of the answer, in order: they count from here on."""

    @abstractmethod
    def is_active(self, drafted: Sequence[int]) -> bool:
        """Whether `apply` could change a row behind `drafted`. Cheap; where none is active, no row is copied."""

    @abstractmethod
    def apply(self, row: NDArray[np.float32], drafted: Sequence[int]) -> None:
        """Edit the row behind `drafted` in place. Called only where it is active."""


class Mask(LogitsProcessor):
    """A processor that only bans. One token can be asked for, so a draw that is legal anyhow needs no mask: the highest
    value of a row, if its token is allowed, is the highest of those that are.
    """

    @abstractmethod
    def allows(self, token: int, drafted: Sequence[int]) -> bool:
        """Whether `apply` would leave `token` alone behind `drafted`. Called only where it is active."""
