"""The canonical sampler in compiled code, which draws the tokens that `paceline.acceptance.reference` draws."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline import _native
from paceline.acceptance.base import NonFiniteLogitsError
from paceline.acceptance.noise import Stream
from paceline.acceptance.reference import DrawParams, NothingAllowedError, Replacements
from paceline.value import value

NOT_FINITE: int = _native.NOT_FINITE
NOTHING_ALLOWED: int = _native.NOTHING_ALLOWED


@value
class Draw:
    """What is drawn from one row: its parameters, its key, and what `reference.process` does to its logits first."""

    params: DrawParams
    seed: int
    position: int
    stream: Stream = Stream.TARGET
    replacements: Replacements | None = None
    mask: NDArray[np.uint32] | None = None


class NativeSampler:
    """Draws from rows of float32 logits, C-contiguous and at least `vocab_size` wide; what lies behind is never looked
    at. `isa` is one of `paceline.runtime.native.runnable_isas`, or "auto"; the tokens are the same with each.

    Several rows are dealt out to `num_threads` threads of `decoder`, where one is given: it must have been made with as
    many at least, and be idle. One caller at a time.
    """

    def __init__(
        self, vocab_size: int, isa: str = "auto", decoder: _native.Decoder | None = None, num_threads: int = 1
    ) -> None:
        self._sampler = _native.Sampler(vocab_size, isa, num_threads)
        self._decoder = decoder

    def sample(self, logits: NDArray[np.float32], draw: Draw) -> int:
        """The token drawn from one row, `[vocabulary]`. Raises NonFiniteLogitsError where a logit is NaN or an infinity
        or a replacement NaN or +inf, NothingAllowedError where no id is left, ValueError for a draw out of range.
        """
        (token,) = self._sampler.sample_rows(logits, [0], [_native_draw(draw)])
        if token == NOT_FINITE:
            raise NonFiniteLogitsError(f"the logits that decide position {draw.position} are not finite")
        if token == NOTHING_ALLOWED:
            raise NothingAllowedError(f"no token id is allowed at position {draw.position}")
        return token

    def sample_rows(self, logits: NDArray[np.float32], rows: Sequence[int], draws: Sequence[Draw]) -> list[int]:
        """For each i the token of draws[i] from row rows[i] of `[rows, vocabulary]`.

        NOT_FINITE or NOTHING_ALLOWED, both negative, stands where `sample` would raise for a row. Raises ValueError for
        a draw out of range.
        """
        return self._sampler.sample_rows(logits, rows, [_native_draw(draw) for draw in draws], self._decoder)


def _native_draw(draw: Draw) -> _native.Draw:
    params, replacements = draw.params, draw.replacements
    ids, values = (None, None) if replacements is None else (replacements.ids, replacements.values)
    return _native.Draw(
        params.temperature,
        params.log_min_p,
        params.top_k,
        params.top_p,
        draw.seed,
        draw.position,
        draw.stream,
        ids,
        values,
        draw.mask,
    )
