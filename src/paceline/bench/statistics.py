"""Spreads of figures, and intervals of ratios of sums by a bootstrap over blocks. Pure, and the same at every run.

The intervals are percentile intervals of the bootstrap, expanded as T. Hesterberg, "What Teachers Should Know About the
Bootstrap" (2015), section 3.3 does it: the plain ones are too narrow where blocks are few, by a factor of about
t / z · √(n / (n - 1)). Simulated with 5 to 40 blocks of skewed ratios, these cover the truth more often than plain
percentile and BCa intervals, and are narrower than bootstrap-t intervals, which cover hardly more.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from paceline.bench.result import Spread

CONFIDENCE = 0.95
MIN_BLOCKS = 5  # with fewer there is no interval, and no verdict
NUM_RESAMPLES = 4000
_SEED = 20_240_229

Sums = NDArray[np.float64]  # [blocks, columns]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio of sums, and its interval; `interval` is None with fewer than `MIN_BLOCKS` blocks."""

    value: float
    interval: tuple[float, float] | None
    num_blocks: int

    @property
    def side(self) -> int:
        """1 or -1 where the interval lies above or below 1, else 0: nobody can tell."""
        if self.interval is None:
            return 0
        low, high = self.interval
        return (low > 1) - (high < 1)


@dataclass(frozen=True, slots=True)
class Sample:
    """Blocks that are drawn together. `sums`: [blocks, columns]. `exponents`: one for each column, 1 above the line of
    the ratio and -1 below."""

    sums: Sums
    exponents: tuple[int, ...]

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]], exponents: tuple[int, ...]) -> "Sample":
        """Rows with a sum that is not positive say nothing of a rate, and are left out."""
        sums = np.asarray(rows, np.float64).reshape(-1, len(exponents))
        return cls(sums[(sums > 0).all(axis=1)], exponents)

    @property
    def num_blocks(self) -> int:
        return len(self.sums)

    def log_ratio(self, draws: NDArray[np.int64]) -> NDArray[np.float64]:
        """`draws` [draws, blocks], the blocks drawn -> the logarithm of each draw's ratio, [draws]."""
        logs = np.zeros(len(draws))
        for column, exponent in zip(self.sums.T, self.exponents, strict=True):
            logs += exponent * np.log(column[draws].sum(axis=1))
        return logs


def spread(values: Sequence[float]) -> Spread:
    """Percentiles between two values are interpolated linearly between them, as NumPy does by default."""
    if not values:
        return Spread()
    p50, p90, p99 = (float(p) for p in np.percentile(values, (50, 90, 99)))
    return Spread(mean(values), p50, p90, p99)


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def ratio(above: float, below: float) -> float | None:
    """None where there is nothing to divide by."""
    return above / below if below > 0 else None


def estimate_ratio(*samples: Sample) -> Estimate | None:
    """The product of the samples' ratios, each of sums over all its blocks; None where a sample has no block.

    A block is drawn whole, with all its columns, so what is common to the columns (the items, a slow spell of the
    machine) does not widen the interval. Different samples are drawn independently.
    """
    fewest = min(sample.num_blocks for sample in samples)
    if fewest == 0:
        return None
    log_value = sum(sample.log_ratio(np.arange(sample.num_blocks)[None]).item() for sample in samples)
    if fewest < MIN_BLOCKS:
        return Estimate(math.exp(log_value), None, fewest)
    random = np.random.default_rng(_SEED)
    logs = np.zeros(NUM_RESAMPLES)
    for sample in samples:
        logs += sample.log_ratio(random.integers(sample.num_blocks, size=(NUM_RESAMPLES, sample.num_blocks)))
    tail = _expanded_tail(fewest)
    low, high = np.exp(np.quantile(logs, (tail, 1 - tail)))
    return Estimate(math.exp(log_value), (float(low), float(high)), fewest)


def _expanded_tail(num_blocks: int) -> float:
    """The share of resamples to leave out at each end."""
    t = _student_quantile((1 + CONFIDENCE) / 2, num_blocks - 1)
    return NormalDist().cdf(-math.sqrt(num_blocks / (num_blocks - 1)) * t)


def _student_quantile(share: float, degrees: int) -> float:
    """Student's t by the expansion in 1 / degrees (Abramowitz and Stegun, 26.7.5): right to 0.5 % from 4 degrees on."""
    z = NormalDist().inv_cdf(share)
    return (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    )


def interpolate(points: Mapping[int, float], at: int) -> float | None:
    """On the straight line between the two measured points around `at`; None outside of what was measured."""
    if not points or not min(points) <= at <= max(points):
        return None
    known = sorted(points)
    return float(np.interp(at, known, [points[n] for n in known]))
