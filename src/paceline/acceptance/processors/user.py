"""The processors that a caller brings: functions of the answer so far and of a row of logits."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.base import NonFiniteLogitsError
from paceline.acceptance.processors.base import Edit
from paceline.sampling_params import UserLogitsProcessor


class LogitsProcessorError(NonFiniteLogitsError):
    """A caller's function raised, or returned something that is no row of logits. Requests beside it go on."""


class UserProcessor(Edit):
    """Calls `function(tokens, row)` with the answer's tokens, draft included, and a row of its own to keep or change.

    It returns the row to go on with: same shape, minus infinity for a ban, neither NaN nor plus infinity. It has to be
    a pure function of these two, or the text depends on how it was drafted. Costs time in proportion to the answer.
    """

    def __init__(self, function: UserLogitsProcessor) -> None:
        self._function = function
        self._tokens: list[int] = []

    def extend(self, tokens: Sequence[int]) -> None:
        self._tokens.extend(tokens)

    def is_active(self, drafted: Sequence[int]) -> bool:  # noqa: ARG002
        return True

    def apply(self, row: NDArray[np.float32], drafted: Sequence[int]) -> None:
        try:
            given = np.asarray(self._function((*self._tokens, *drafted), row.copy()))
        except Exception as error:
            raise LogitsProcessorError(
                f"the logits processor {self._function!r} raised {type(error).__name__}: {error}"
            ) from error
        if given.shape != row.shape or not np.issubdtype(given.dtype, np.floating):
            raise LogitsProcessorError(
                f"the logits processor {self._function!r} returned {given.dtype} of shape {given.shape}; expected "
                f"float32 of shape {row.shape}"
            )
        with np.errstate(over="ignore"):
            row[:] = given
        if not row.max() < np.inf:  # NaN too
            raise LogitsProcessorError(f"the logits processor {self._function!r} returned NaN or plus infinity")
