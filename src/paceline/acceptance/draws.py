"""The chances that a rule takes, keyed so that no two decisions of a sequence ever share a number.

Uniforms are keyed by the first position that the draft is to decide, and by the token's number in the draft, not by the
token's own position: every step decides a new first position, while a position behind a rejected token is drafted and
judged again. Block verification looks at all of a draft before it stops, so a number kept for a position would come
back as one that the text depends on already, and bias it. A step emits one residual token at most, and then begins
behind it: its position is key enough.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.base import Law
from paceline.acceptance.noise import Stream


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
        return float(uniform(self._seed, self._begin, [index], Stream.ACCEPT)[0]) < probability

    def token(self, position: int, law: Law) -> int:
        """argmax(log law + Gumbel noise), ties to the lowest id. What has no probability needs no noise."""
        support = np.flatnonzero(law)
        with np.errstate(divide="ignore"):
            noise = -np.log(-np.log(uniform(self._seed, position, support, Stream.RESIDUAL)))
        return int(support[(np.log(law[support]) + noise).argmax()])


def uniform(seed: int, position: int, tokens: Sequence[int] | NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:
    """A stand-in for the noise of `paceline.acceptance.noise`: float64 in (0, 1), one for each of `tokens`."""
    generators = (np.random.default_rng((seed, position, int(token), int(stream))) for token in tokens)
    return np.array([generator.random() for generator in generators])
