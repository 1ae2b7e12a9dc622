"""The chances that a rule takes, keyed so that no two decisions of a sequence ever share a number.

Uniforms are keyed by the first position that the draft is to decide, and by the token's number in the draft, not by the
token's own position: every step decides a new first position, while a position behind a rejected token is drafted and
judged again. Block verification looks at all of a draft before it stops, so a number kept for a position would come
back as one that the text depends on already, and bias it. A step emits one residual token at most, and then begins
behind it: its position is key enough.
"""

from typing import Protocol

import numpy as np

from paceline.acceptance.base import Law
from paceline.acceptance.elementary import log
from paceline.acceptance.noise import Stream, gumbel, uniform_of

_SMALLEST_NORMAL = 2.0**-1022  # what is smaller has no logarithm here, and would never be drawn


class Draws(Protocol):
    """The chances of one verification."""

    def accepts(self, index: int, probability: float) -> bool:
        """True with `probability`: the test of draft token `index`. Called at most once for each."""
        ...

    def token(self, position: int, law: Law) -> int:
        """A token from `law`, to be emitted at `position`. Called at most once."""
        ...


class KeyedDraws:
    """Chances as a pure function of the sample seed and of `begin`, the first position that the draft is to decide."""

    def __init__(self, seed: int, begin: int) -> None:
        self._seed = seed
        self._begin = begin

    def accepts(self, index: int, probability: float) -> bool:
        return uniform_of(self._seed, self._begin, index, Stream.ACCEPT) < probability

    def token(self, position: int, law: Law) -> int:
        """argmax(log law + Gumbel noise), ties to the lowest id. What has no probability needs no noise."""
        support = np.flatnonzero(law >= _SMALLEST_NORMAL)
        scores = log(law[support]) + gumbel(self._seed, position, support, Stream.RESIDUAL)
        return int(support[scores.argmax()])
