"""Stand-ins for the processors between logits and p: short, and each a function of all tokens before."""

from dataclasses import asdict

import numpy as np
from rule_enumeration import Processed, Row, Tokens

from paceline.acceptance import Law, reference
from paceline.acceptance.reference import DrawParams


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


def truncated_after_penalty(params: DrawParams) -> Processed:
    """The product's own temperature and truncations, on logits that depend on the tokens before."""

    def processed(logits: Row, prefix: Tokens) -> Law:
        penalties = np.float32(0.9) * np.bincount(prefix, minlength=len(logits)).astype(np.float32)
        law: Law = reference.law(logits - penalties, params)
        return law

    processed.__name__ = ",".join(f"{name}={number}" for name, number in asdict(params).items())
    return processed


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
    truncated_after_penalty(DrawParams(temperature=0.7, min_p=0.3)),
    truncated_after_penalty(DrawParams(temperature=1.5, top_p=0.7)),
    truncated_after_penalty(DrawParams(top_k=2)),
    grammar,
    banned_zero,
)
