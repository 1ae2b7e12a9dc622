"""Whether drafts stand as often as the target has it: a bet on each, which is fair if they do.

Before a token is drawn, its draft names a set that has probability p under the target's law. Staking a fortune of 1 on
the odds of that set being e^λ times what they should be multiplies it by e^(λ·hit) / (1 − p + p·e^λ), which is 1 on
average if the token is drawn from the law, whatever was drawn before and however p depends on it. So the fortune of
many bets in a row, shared among several λ, exceeds 1/α with probability α at most, for any number of tokens (Ville,
*Étude critique de la notion de collectif*, 1939; Shafer, *Journal of the Royal Statistical Society* A 184, 2021).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TILTS = np.array([-4.0, -2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0, 4.0])  # λ
_QUANTILE = 1.2816  # of the normal distribution at 0.9
_LARGEST_TILT = 20.0
_NUM_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class AcceptanceTest:
    """Of `num_tokens` tokens that had a draft, `num_hits` were what their drafts favoured; `num_expected` is the mean
    of that number under the target's laws. `p_value` is the inverse of the fortune, never too small. A test that finds
    odds which are `detectable_odds` times as high with probability 0.9, about; None where no odds are high enough.
    """

    name: str
    num_tokens: int
    num_hits: int
    num_expected: float
    p_value: float
    threshold: float
    detectable_odds: float | None

    @property
    def has_failed(self) -> bool:
        return self.p_value < self.threshold


def acceptance_test(probabilities: Sequence[float], hits: Sequence[bool], threshold: float) -> AcceptanceTest:
    """`probabilities[i]`: what the target gives to the set that draft i favoured; `hits[i]`: whether it came."""
    p, is_hit = np.asarray(probabilities, np.float64), np.asarray(hits, np.bool_)
    fortunes = np.array([tilt * is_hit.sum() - _log_mean(p, tilt).sum() for tilt in _TILTS])
    fortune = float(fortunes.max() + np.log(np.exp(fortunes - fortunes.max()).mean()))
    return AcceptanceTest(
        "acceptance",
        len(p),
        int(is_hit.sum()),
        float(p.sum()),
        float(np.exp(-max(fortune, 0.0))),
        threshold,
        _detectable_odds(p, threshold),
    )


def _log_mean(p: NDArray[np.float64], tilt: float) -> NDArray[np.float64]:
    """log(1 − p + p·e^tilt)."""
    mean: NDArray[np.float64] = np.log1p(p * np.expm1(tilt))
    return mean


def _detectable_odds(p: NDArray[np.float64], threshold: float) -> float | None:
    """Where the fortune of the right tilt, less its spread, pays for the threshold and for not having known it."""
    needed = np.log(len(_TILTS) / threshold)

    def is_found(tilt: float) -> bool:
        tilted = np.exp(np.log(np.maximum(p, np.finfo(np.float64).tiny)) + tilt - _log_mean(p, tilt))
        gain = tilt * tilted.sum() - _log_mean(p, tilt).sum()
        spread = tilt * np.sqrt((tilted * np.maximum(1 - tilted, 0.0)).sum())
        return bool(gain - _QUANTILE * spread > needed)

    low, high = 0.0, _LARGEST_TILT
    if not is_found(high):
        return None
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return float(np.exp(high))
