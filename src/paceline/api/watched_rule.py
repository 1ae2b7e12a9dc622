"""An acceptance rule that is looked over the shoulder: what was drafted for which position."""

from typing import ClassVar

import numpy as np

from paceline.acceptance import AcceptanceRule, BlockRule, Law, Outcome, Verification
from paceline.certificate import DraftLaw

_NUM_KEPT = 32  # of a sampled draft's likeliest tokens


class WatchedRule(AcceptanceRule):
    """Decides as `rule` does. `drafted[sequence][position]`: the draft of every row that decided a token, where there
    was one, as far as a test of that token may use it.

    A token of a step is distributed as the target's given all that came before it, its draft's own law included. Under
    a rule that looks ahead, whether it shares a step with the token before may itself depend on it, so of `block` and
    sampled drafts only the first token of a step is kept.
    """

    name: ClassVar[str] = "watched"
    is_token_identical: ClassVar[bool] = False  # of the rule inside, nothing is known here
    is_lossless: ClassVar[bool] = False

    def __init__(self, rule: AcceptanceRule) -> None:
        self._rule = rule
        self.drafted: dict[int, dict[int, DraftLaw]] = {}

    def accept_probability(self, p: Law, q: Law, token: int) -> float:
        return self._rule.accept_probability(p, q, token)

    def residual(self, p: Law, q: Law, token: int) -> Law:
        return self._rule.residual(p, q, token)

    def accept(self, verification: Verification) -> Outcome:
        outcome = self._rule.accept(verification)
        if verification.draft:
            looks_ahead = isinstance(self._rule, BlockRule) and verification.q is not None
            drafted = self.drafted.setdefault(verification.sequence, {})
            for index, row in enumerate(outcome.path[:1] if looks_ahead else outcome.path):
                children = [i for i, parent in enumerate(verification.parents) if parent == row - 1]
                if children:
                    drafted[verification.position + index] = _draft_law(verification, children)
        return outcome


def _draft_law(verification: Verification, children: list[int]) -> DraftLaw:
    """Of siblings. Those that were drawn are seen only in the law that the first of them came from: which they are is
    chance, and the emitted token depends on it."""
    if verification.q is None:
        ids = np.unique([verification.draft[child] for child in children])
        return DraftLaw(ids, np.ones(len(ids)))
    q = verification.q[children[0]]
    kept = np.argpartition(q, -_NUM_KEPT)[-_NUM_KEPT:] if len(q) > _NUM_KEPT else np.arange(len(q))
    return DraftLaw(kept, q[kept])
