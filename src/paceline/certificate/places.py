"""Where a token lies in the target's distribution: the probability before it, in some order of the tokens, and its own.

A token drawn from the law itself, and a uniform share of its own probability on top of what lies before it, give a
uniform number in [0, 1) whatever the law (the probability integral transform, randomised for discrete laws: Rosenblatt,
*Annals of Mathematical Statistics* 23, 1952; Smith, *Journal of Forecasting* 4, 1985). The order may depend on
everything that was emitted before the token, and on nothing behind.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Law = NDArray[np.float64]  # [vocabulary], sums to 1
Place = tuple[float, float]  # the probability before the token, and its own


def likelihood_place(law: Law, token: int) -> Place:
    """In order of probability, likeliest first, ties to the lowest id."""
    own = law[token]
    return float(law[law > own].sum() + own * np.count_nonzero(law[:token] == own)), float(own)


class Recency:
    """The order of last occurrence in a text, the newest token first; tokens that never occurred come behind, in order
    of probability. What copies from the text gathers at its beginning.
    """

    def __init__(self, tokens: Iterable[int]) -> None:
        self._last: dict[int, None] = {}  # in order of last occurrence, the newest at the end
        for token in tokens:
            self.extend(token)

    def extend(self, token: int) -> None:
        self._last.pop(token, None)
        self._last[token] = None

    def place(self, law: Law, token: int) -> Place:
        known = np.fromiter(reversed(self._last), np.int64, len(self._last))
        found = np.flatnonzero(known == token)
        if found.size:
            return float(law[known[: found[0]]].sum()), float(law[token])
        rest = law.copy()
        rest[known] = 0.0
        before, own = likelihood_place(rest, token)
        return float(law[known].sum()) + before, own
