"""Pearson's test of draws against a law, with cells pooled and the tail of chi-square summed, not looked up."""

import math

import numpy as np
from numpy.typing import NDArray

MIN_EXPECTED = 25.0
"""Draws expected in a cell. Five are the usual rule for levels of some percent; far out in the tail, cells of five have
chi-square's law no longer."""


def chi_square_tail(x: float, num_free: int) -> float:
    """Probability that chi-square with `num_free` degrees of freedom exceeds x: the regularised upper incomplete gamma
    function Q(num_free / 2, x / 2), by its series below the mean and by its continued fraction above."""
    a, x = num_free / 2, x / 2
    if x <= 0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        k = a
        while abs(term) > 1e-17 * total:
            k += 1
            term *= x / k
            total += term
        return 1 - front * total
    # Lentz's algorithm.
    b = x + 1 - a
    c, d = math.inf, 1 / b
    fraction = d
    for i in range(1, 100_000):
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            return front * fraction
    raise ArithmeticError(f"no convergence for {num_free} degrees of freedom at {2 * x}")


def goodness_of_fit(tokens: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    """Probability, if `tokens` are independent draws from `law`, of counts as far from it or further. 0 where a
    token was drawn that the law gives nothing."""
    counts = np.bincount(tokens, minlength=len(law))
    if counts[law == 0].any():
        return 0.0
    order = np.argsort(-law, kind="stable")[: np.count_nonzero(law)]
    expected, found = _pooled(len(tokens) * law[order], counts[order].astype(np.float64))
    if len(expected) < 2:
        raise ValueError(f"{len(tokens)} draws fill {len(expected)} cell; expected more draws or a flatter law")
    return chi_square_tail(float(((found - expected) ** 2 / expected).sum()), len(expected) - 1)


def _pooled(expected: NDArray[np.float64], found: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Cells in descending order, those of too few draws put together with the next ones; the rest joins the last."""
    begins, total = [0], 0.0
    for i, number in enumerate(expected.tolist()):
        if total >= MIN_EXPECTED:
            begins.append(i)
            total = 0.0
        total += number
    if total < MIN_EXPECTED and len(begins) > 1:
        begins.pop()
    return np.add.reduceat(expected, begins), np.add.reduceat(found, begins)
