"""The rule `match`: draw the target's own token at every row and keep the draft while it agrees.

The emitted tokens are the sampler's own, so they are those of plain decoding, whatever drafted and however much. Seen
as speculative sampling (Leviathan et al., arXiv:2211.17192; Chen et al., arXiv:2302.01318) with a draft token x that is
independent of the draw: x stands with probability p(x), and a rejected x leaves p without x. Neither depends on q.
"""

from collections.abc import Sequence
from typing import ClassVar

from paceline.acceptance.base import (
    AcceptanceRule,
    Law,
    NonFiniteLogitsError,
    Outcome,
    Verification,
    check_parents,
)


class MatchRule(AcceptanceRule):
    """For chains and trees. The drawing path draws from p and compares, and so has the law below by construction.

    Of equal siblings the first is followed: a proposer that repeats itself wastes rows, not correctness.
    """

    name: ClassVar[str] = "match"
    is_token_identical: ClassVar[bool] = True
    is_lossless: ClassVar[bool] = True

    def accept_probability(self, p: Law, q: Law, token: int) -> float:  # noqa: ARG002 (holds for any q)
        return float(p[token])

    def residual(self, p: Law, q: Law, token: int) -> Law:  # noqa: ARG002 (holds for any q)
        """Raises ValueError where p holds nothing but `token`, which is then never rejected."""
        rest = p.copy()
        rest[token] = 0.0
        total = float(rest.sum())
        if total == 0.0:
            raise ValueError(f"token {token} has all of the probability and is never rejected")
        residual: Law = rest / total
        return residual

    def accept(self, verification: Verification) -> Outcome:
        check_parents(verification.parents)
        children = _children(verification.parents, verification.draft)
        path, tokens = [0], list[int]()
        row: int | None = 0
        while row is not None:
            position = verification.position + len(tokens)
            try:
                token = verification.sampler.sample(verification.logits[row], position, tokens)
            except NonFiniteLogitsError as error:
                return Outcome(verification.sequence, tuple(path), tuple(tokens), error=str(error))
            tokens.append(token)
            row = children.get((row, token))
            if row is not None:
                path.append(row)
        return Outcome(verification.sequence, tuple(path), tuple(tokens))


def _children(parents: Sequence[int], draft: Sequence[int]) -> dict[tuple[int, int], int]:
    """From (row, token) to the row of that row's child holding the token; row 0 is the newest committed token."""
    children: dict[tuple[int, int], int] = {}
    for i, (parent, token) in enumerate(zip(parents, draft, strict=True)):
        children.setdefault((parent + 1, token), i + 1)
    return children
