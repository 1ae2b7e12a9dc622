"""The rule `typical`: keep a draft token that the target finds plausible. Lossy: it changes the law of the text.

Medusa's typical acceptance (Cai et al., arXiv:2401.10774): x stands if p(x) > min(epsilon, delta · exp(−H(p))), H the
entropy in nats. It is here to be compared with, and refuses to run unless it is told that lossy is fine.
"""

from typing import ClassVar

import numpy as np

from paceline.acceptance.base import Law
from paceline.acceptance.rejection import RejectionRule
from paceline.errors import UsageError


class TypicalRule(RejectionRule):
    """For chains and trees. In a tree the first child that stands is followed; Medusa takes the longest path instead.

    `epsilon` and `delta` default to Medusa's; both lie in (0, 1]. Raises UsageError unless `allow_lossy` is True.
    """

    name: ClassVar[str] = "typical"
    is_lossless: ClassVar[bool] = False

    def __init__(self, *, allow_lossy: bool = False, epsilon: float = 0.09, delta: float = 0.3) -> None:
        if allow_lossy is not True:
            raise UsageError(
                "the acceptance rule 'typical' is lossy: the text is no longer distributed as the target's; "
                "set allow_lossy to True if that is wanted, or choose 'match', 'rejection' or 'block'"
            )
        for option, number in (("epsilon", epsilon), ("delta", delta)):
            if not 0.0 < number <= 1.0:
                raise UsageError(f"{option} of the acceptance rule 'typical' is {number}; expected above 0, at most 1")
        self._epsilon = epsilon
        self._delta = delta

    def accept_probability(self, p: Law, q: Law, token: int) -> float:  # noqa: ARG002 (q plays no part)
        """1 or 0."""
        support = p[p > 0.0]
        entropy = -float((support * np.log(support)).sum())
        return float(p[token] > min(self._epsilon, self._delta * np.exp(-entropy)))

    def residual(self, p: Law, q: Law, token: int) -> Law:  # noqa: ARG002 (nothing is taken from p)
        return p
