"""The rule `rejection`: keep a draft token with probability min(1, p/q), or emit what p has more of than q.

Speculative sampling (Leviathan et al., arXiv:2211.17192; Chen et al., arXiv:2302.01318) for chains. In a tree the
children of a token are tried in the order in which they were drawn, each against what the ones before it left of p
(recursive rejection sampling: Jeon et al., arXiv:2402.14160; Chen et al., arXiv:2402.12374). A deterministic draft is
the case of q a point mass: x stands with probability p(x), and leaves p without x.
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
from paceline.acceptance.draws import Draws, KeyedDraws
from paceline.acceptance.laws import capped_ratio, draft_law, normalized_excess


class RejectionRule(AcceptanceRule):
    """For chains and trees, exact in distribution for any q that is reported truly, siblings drawn with or without
    replacement included: each is judged by the distribution that it was itself drawn from.
    """

    name: ClassVar[str] = "rejection"
    is_token_identical: ClassVar[bool] = False
    is_lossless: ClassVar[bool] = True

    def accept_probability(self, p: Law, q: Law, token: int) -> float:
        """min(1, p(token) / q(token)). Needs q(token) > 0, else the token was not drawn from q."""
        return capped_ratio(float(p[token]), float(q[token]))

    def residual(self, p: Law, q: Law, token: int) -> Law:  # noqa: ARG002 (the same for every rejected token)
        """max(0, p − q), normalised."""
        return normalized_excess(p, q)

    def accept(self, verification: Verification) -> Outcome:
        """Raises RuntimeError for a token that cannot have been drawn from its q (see `draft_law`)."""
        check_parents(verification.parents)
        return self.decide(verification, KeyedDraws(verification.sampler.seed, verification.position))

    def decide(self, verification: Verification, draws: Draws) -> Outcome:
        """What `accept` does once the chances are given. The sampler draws where no draft token was tried."""
        children = _children(verification.parents)
        path, tokens = [0], list[int]()
        try:
            while siblings := children[path[-1]]:
                standing, rest = self._try(siblings, self._law(verification, path[-1], tokens), verification, draws)
                if standing is None:
                    tokens.append(draws.token(verification.position + len(tokens), rest))
                    return Outcome(verification.sequence, tuple(path), tuple(tokens))
                path.append(standing + 1)
                tokens.append(verification.draft[standing])
            tokens.append(self._sample(verification, path[-1], tokens))
        except NonFiniteLogitsError as error:
            return Outcome(verification.sequence, tuple(path), tuple(tokens), error=str(error))
        return Outcome(verification.sequence, tuple(path), tuple(tokens))

    def _try(self, siblings: Sequence[int], p: Law, verification: Verification, draws: Draws) -> tuple[int | None, Law]:
        """The first sibling that stands, or None; and what is left of p behind those that did not."""
        for index in siblings:
            token, q = verification.draft[index], draft_law(verification, index, len(p))
            if draws.accepts(index, self.accept_probability(p, q, token)):
                return index, p
            p = self.residual(p, q, token)
        return None, p

    @staticmethod
    def _law(verification: Verification, row: int, tokens: Sequence[int]) -> Law:
        return verification.sampler.law(verification.logits[row], verification.position + len(tokens), tokens)

    @staticmethod
    def _sample(verification: Verification, row: int, tokens: Sequence[int]) -> int:
        return verification.sampler.sample(verification.logits[row], verification.position + len(tokens), tokens)


def _children(parents: Sequence[int]) -> list[list[int]]:
    """For each row the draft tokens that hang from it, in their order; row 0 is the newest committed token."""
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for index, parent in enumerate(parents):
        children[parent + 1].append(index)
    return children
