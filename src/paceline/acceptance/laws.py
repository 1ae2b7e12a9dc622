"""The arithmetic that the rules share, in float64: ratios, what p has more of than q, and the q of a draft token."""

from collections.abc import Iterable

import numpy as np

from paceline.acceptance.base import Law, Verification

_TOLERANCE = 1e-9  # of a sum in float64; a row that was rounded to float32 is off by more, and is another distribution


def capped_ratio(p: float, q: float) -> float:
    """min(1, p / q), never overflowing. Raises RuntimeError unless q > 0: the token was not drawn from q then."""
    if not q > 0.0:
        raise RuntimeError(f"a draft token has the probability {q!r} in its own q; expected what it was drawn from")
    return 1.0 if p >= q else p / q


def normalized_excess(p: Law, q: Law, scale: float = 1.0) -> Law:
    """max(0, scale · p − q), normalised; p itself where rounding leaves nothing: what leads there has no probability
    but that of rounding.
    """
    excess = np.maximum(scale * p - q, 0.0)
    total = float(excess.sum())
    if total == 0.0:
        return p
    normalized: Law = excess / total
    return normalized


def point_mass(vocab_size: int, token: int) -> Law:
    """The q of a deterministic draft: all of it at `token`."""
    q = np.zeros(vocab_size)
    q[token] = 1.0
    return q


def without(q: Law, tokens: Iterable[int]) -> Law:
    """q given that none of `tokens` is drawn: what the next sibling is drawn from, and reports, without replacement.

    Raises ValueError where nothing is left.
    """
    rest = q.copy()
    rest[list(tokens)] = 0.0
    total = float(rest.sum())
    if total == 0.0:
        raise ValueError("every token of the distribution is taken; expected fewer siblings, or another distribution")
    remaining: Law = rest / total
    return remaining


def draft_law(verification: Verification, index: int, vocab_size: int) -> Law:
    """The distribution that draft token `index` was drawn from.

    Raises RuntimeError for one that cannot be that: the proposer's defect. To go on would change the law of the text
    without a trace, whether the token then counted as accepted or as rejected.
    """
    token = verification.draft[index]
    name = f"draft token {token} (number {index} of sequence {verification.sequence})"
    if not 0 <= token < vocab_size:
        raise RuntimeError(f"{name} is no id of the vocabulary; expected 0 to {vocab_size - 1}")
    if verification.q is None:
        return point_mass(vocab_size, token)
    shape = (len(verification.draft), vocab_size)
    if verification.q.shape != shape:
        raise RuntimeError(f"{name} came with q of shape {verification.q.shape}; expected {shape}")
    q: Law = verification.q[index]
    total, probability = float(q.sum()), float(q[token])
    if not abs(total - 1.0) <= _TOLERANCE or not probability > 0.0:  # in this form NaN fails too
        raise RuntimeError(
            f"{name} was not drawn from its q, which gives it {probability!r} and sums to {total!r}; "
            "expected a positive probability and 1"
        )
    return q
