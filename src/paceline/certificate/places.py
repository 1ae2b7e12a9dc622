"""Where a token lies in the target's distribution: the probability before it, in some order of the tokens, and its own.

A token drawn from the law itself, and a uniform share of its own probability on top of what lies before it, give a
uniform number in [0, 1) whatever the law (the probability integral transform, randomised for discrete laws: Rosenblatt,
*Annals of Mathematical Statistics* 23, 1952; Smith, *Journal of Forecasting* 4, 1985). The order may depend on
everything that was emitted before the token, and on nothing behind.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Law = NDArray[np.float64]  # [vocabulary], sums to 1
Place = tuple[float, float]  # the probability before the token, and its own


def likelihood_place(law: Law, token: int) -> Place:
    """In order of probability, likeliest first, ties to the lowest id."""
    own = law[token]
    return float(law[law > own].sum() + own * np.count_nonzero(law[:token] == own)), float(own)


def identity_place(law: Law, token: int) -> Place:
    """In order of ids."""
    return float(law[:token].sum()), float(law[token])


@dataclass(frozen=True, slots=True, eq=False)
class DraftLaw:
    """What a draft's token was drawn from, as far as it is known: `ids`, each once, and their probabilities. For tokens
    that were not drawn by chance, these tokens with probabilities of 1.
    """

    ids: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    def place(self, law: Law, token: int) -> Place:
        """In order of what the draft has more of than the target, as a ratio; tokens that are not known of it come
        behind, in order of probability. Where a rule lets drafts stand too often, tokens gather at the beginning.
        """
        ratios = self.probabilities / np.maximum(law[self.ids], np.finfo(np.float64).tiny)
        return _listed_place(law, token, self.ids[np.lexsort((self.ids, -ratios))])

    def bet(self, law: Law, token: int) -> tuple[float, bool]:
        """The target's probability of the tokens that the draft is known to favour, and whether `token` is one."""
        favoured = self.ids[self.probabilities >= law[self.ids]]
        return min(float(law[favoured].sum()), 1.0), bool((favoured == token).any())


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
        return _listed_place(law, token, known)


def _listed_place(law: Law, token: int, listed: NDArray[np.int64]) -> Place:
    """In the order of `listed`, and behind it in order of probability."""
    found = np.flatnonzero(listed == token)
    if found.size:
        return float(law[listed[: found[0]]].sum()), float(law[token])
    rest = law.copy()
    rest[listed] = 0.0
    before, own = likelihood_place(rest, token)
    return float(law[listed].sum()) + before, own
