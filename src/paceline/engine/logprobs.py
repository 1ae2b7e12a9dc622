"""The target's own log-probabilities, from the rows of the verification step: raw, before any processor or temperature.

Raw ones say what the model thinks; those behind bans and truncation say what was left of it. Like vLLM's default.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.value import value


@value
class TokenLogprobs:
    """What the target held of `token` at its position: `rank` 1 is the likeliest. `top`: the likeliest tokens and their
    log-probabilities, in order, as many as were asked for.
    """

    token: int
    logprob: float
    rank: int
    top: tuple[tuple[int, float], ...]


def token_logprobs(logits: NDArray[np.float32], token: int, num_top: int) -> TokenLogprobs:
    """Of `token` under one row of logits, `[vocabulary]`; `num_top` -1 means all. Sums in float64."""
    row = logits.astype(np.float64)
    highest = row.max()
    row -= highest + np.log(np.exp(row - highest).sum())
    return TokenLogprobs(
        token=token,
        logprob=float(row[token]),
        rank=int(np.count_nonzero(row > row[token])) + 1,
        top=tuple([(int(i), float(row[i])) for i in _highest(row, len(row) if num_top < 0 else num_top)]),
    )


def _highest(row: NDArray[np.float64], num: int) -> NDArray[np.intp]:
    """The indices of the `num` highest, highest first, ties to the lowest index."""
    num = min(num, len(row))
    if num == 0:
        return np.empty(0, np.intp)
    least = np.partition(row, len(row) - num)[len(row) - num]  # all above it are in; of those equal to it, the first
    candidates = np.flatnonzero(row >= least)
    order = np.lexsort((candidates, -row[candidates]))
    return candidates[order[:num]]


def chain_logprobs(
    logits: NDArray[np.float32], rows: Sequence[int], tokens: Sequence[int], num_top: int
) -> tuple[TokenLogprobs, ...]:
    """Of each of `tokens`, which row `rows[i]` of `logits` decided."""
    return tuple([token_logprobs(logits[row], token, num_top) for row, token in zip(rows, tokens, strict=True)])
