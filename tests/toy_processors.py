"""Stand-ins for the processors between logits and p: short, and each a function of all tokens before."""

import numpy as np
from rule_enumeration import Processed, Row, Tokens

from paceline.acceptance import Law


def softmax(z: Law) -> Law:
    weights = np.exp(z - z.max())
    law: Law = weights / weights.sum()
    return law


def plain(logits: Row, prefix: Tokens) -> Law:  # noqa: ARG001
    return softmax(logits.astype(np.float64))


def greedy(logits: Row, prefix: Tokens) -> Law:  # noqa: ARG001
    law = np.zeros(len(logits))
    law[logits.argmax()] = 1.0
    return law


def near_one_hot(logits: Row, prefix: Tokens) -> Law:  # noqa: ARG001
    return softmax(25.0 * logits.astype(np.float64))


def repetition_penalty(logits: Row, prefix: Tokens) -> Law:
    z = logits.astype(np.float64)
    seen = list(set(prefix))
    z[seen] = np.where(z[seen] > 0, z[seen] / 1.8, z[seen] * 1.8)
    return softmax(z)


def frequency_penalty(logits: Row, prefix: Tokens) -> Law:
    return softmax(logits.astype(np.float64) - 0.9 * np.bincount(prefix, minlength=len(logits)))


def min_p_after_penalty(logits: Row, prefix: Tokens) -> Law:
    law = frequency_penalty(logits, prefix)
    law[law < 0.3 * law.max()] = 0.0
    return law / law.sum()


def top_p_after_penalty(logits: Row, prefix: Tokens) -> Law:
    law = repetition_penalty(logits, prefix)
    order = np.argsort(-law, kind="stable")
    before = np.cumsum(law[order]) - law[order]
    law[order[before >= 0.7]] = 0.0
    return law / law.sum()


def grammar(logits: Row, prefix: Tokens) -> Law:
    """No token twice in a row, and token 0 first. Means nothing, and must not be asked, behind what breaks that."""
    assert not any(prefix[i] == prefix[i + 1] for i in range(len(prefix) - 1)), "asked behind an illegal token"
    assert not prefix or prefix[0] == 0, "asked behind an illegal token"
    law = plain(logits, prefix)
    if prefix:
        law[prefix[-1]] = 0.0
    else:
        law[1:] = 0.0
    return law / law.sum()


def banned_zero(logits: Row, prefix: Tokens) -> Law:
    law = plain(logits, prefix)
    law[0] = 0.0
    return law / law.sum()


PROCESSED: tuple[Processed, ...] = (
    plain,
    greedy,
    near_one_hot,
    repetition_penalty,
    frequency_penalty,
    min_p_after_penalty,
    top_p_after_penalty,
    grammar,
    banned_zero,
)
