"""The rule `block`: judge a sampled chain as a whole, and keep the longest part of it that stands.

Block verification (Sun et al., arXiv:2403.10444): no rule for one chain keeps more draft tokens on average. Write
r_0 = 1 and r_i = min(1, r_{i−1} · p_i(x_i) / q_i(x_i)). The first i tokens stand as a whole with probability
S / (S + 1 − r_i), where S = Σ max(0, r_i · p_{i+1} − q_{i+1}), and all of them with probability r_γ; the most that
stand are kept. If those are i < γ tokens, the next one is drawn from max(0, r_i · p_{i+1} − q_{i+1}), normalised.
"""

from typing import ClassVar

import numpy as np

from paceline.acceptance.base import Law, NonFiniteLogitsError, Outcome, Verification
from paceline.acceptance.draws import Draws
from paceline.acceptance.laws import capped_ratio, draft_law, normalized_excess
from paceline.acceptance.rejection import RejectionRule


class BlockRule(RejectionRule):
    """For chains with q. Trees and deterministic drafts, which gain nothing from it, are judged token by token.

    `accept_probability` and `residual` are those of a draft of one token, where both rules are the same.
    """

    name: ClassVar[str] = "block"

    def joint_ratio(self, ratio: float, p: Law, q: Law, token: int) -> float:
        """r_i, from r_{i−1} = `ratio` and the two distributions of token i."""
        return capped_ratio(ratio * float(p[token]), float(q[token]))

    def stand_probability(self, ratio: float, p: Law, q: Law) -> float:
        """Probability that i tokens stand as a whole, from r_i = `ratio` and the two distributions of token i + 1."""
        excess = float(np.maximum(ratio * p - q, 0.0).sum())
        lost = 1.0 - ratio
        return excess / (excess + lost) if excess + lost > 0.0 else 1.0

    def joint_residual(self, ratio: float, p: Law, q: Law) -> Law:
        """The distribution of token i + 1 given that i tokens are kept, r_i = `ratio`, of more that were drafted."""
        return normalized_excess(p, q, ratio)

    def decide(self, verification: Verification, draws: Draws) -> Outcome:
        if verification.q is None or verification.parents != tuple(range(-1, len(verification.draft) - 1)):
            return super().decide(verification, draws)
        draft, q = verification.draft, verification.q
        laws, ratios = self._judge(verification)
        kept = self._num_kept(laws, ratios, q, draws)
        tokens, path = draft[:kept], tuple(range(kept + 1))
        if kept < len(laws):
            rest = self.joint_residual(ratios[kept], laws[kept], q[kept])
            return Outcome(verification.sequence, path, (*tokens, draws.token(verification.position + kept, rest)))
        try:
            return Outcome(verification.sequence, path, (*tokens, self._sample(verification, kept, tokens)))
        except NonFiniteLogitsError as error:
            return Outcome(verification.sequence, path, tokens, error=str(error))

    def _judge(self, verification: Verification) -> tuple[list[Law], list[float]]:
        """p_1 … p_γ and r_0 … r_γ of the γ tokens that can stand.

        Logits that are not finite end the draft with the token that they belong to, and so does a token that p gives
        nothing: no more than the ones before it could stand, and p behind it may mean nothing. Both depend only on what
        comes before in the draft, which is what keeps a draft of varying length exact.
        """
        laws, ratios = list[Law](), [1.0]
        for i, token in enumerate(verification.draft):
            if ratios[-1] == 0.0:
                break
            try:
                p = self._law(verification, i, verification.draft[:i])
            except NonFiniteLogitsError:
                break
            laws.append(p)
            ratios.append(self.joint_ratio(ratios[-1], p, draft_law(verification, i, len(p)), token))
        return laws, ratios

    def _num_kept(self, laws: list[Law], ratios: list[float], q: Law, draws: Draws) -> int:
        """The longest part that stands, looked for from the end: what is shorter need not be judged then."""
        for i in range(len(laws), 0, -1):
            stands = ratios[i] if i == len(laws) else self.stand_probability(ratios[i], laws[i], q[i])
            if draws.accepts(i - 1, stands):
                return i
        return 0
