"""Tail probabilities of the chi-square distribution, central and not, in plain arithmetic.

All from the regularised upper incomplete gamma function Q(a, x): a chi-square of k degrees of freedom exceeds x with
probability Q(k/2, x/2) (Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.4.19 and, for the noncentral
one, 26.4.25). Accurate to about 1e-12 of the value.
"""

import math
from collections.abc import Callable
from functools import lru_cache

_PRECISION = 1e-15
_MAX_TERMS = 100_000
_TINY = 1e-300
_NUM_HALVINGS = 200


def upper_gamma(a: float, x: float) -> float:
    """Q(a, x) for a > 0 and x >= 0: the share of the gamma integral that lies above x."""
    if not (a > 0 and x >= 0):
        raise ValueError(f"a is {a!r} and x {x!r}; expected a > 0 and x >= 0")
    if x == 0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    return 1.0 - front * _series(a, x) if x < a + 1 else front * _fraction(a, x)


def _series(a: float, x: float) -> float:
    """P(a, x) over x^a e^-x / Γ(a), as a power series (6.5.29); converges fast for x < a + 1."""
    term = total = 1.0 / a
    for n in range(1, _MAX_TERMS):
        term *= x / (a + n)
        total += term
        if term < total * _PRECISION:
            return total
    raise ArithmeticError(f"the series for a = {a!r}, x = {x!r} has not converged")


def _fraction(a: float, x: float) -> float:
    """Q(a, x) over the same, as a continued fraction (6.5.31) from the front, by Lentz's method; for x >= a + 1."""
    b = x + 1 - a
    c, d = 1 / _TINY, 1 / b
    value = d
    for n in range(1, _MAX_TERMS):
        numerator = n * (a - n)
        b += 2
        d = 1 / _nonzero(b + numerator * d)
        c = _nonzero(b + numerator / c)
        value *= c * d
        if abs(c * d - 1) < _PRECISION:
            return value
    raise ArithmeticError(f"the continued fraction for a = {a!r}, x = {x!r} has not converged")


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def chi_square_tail(statistic: float, df: int) -> float:
    """The probability that a chi-square of `df` degrees of freedom is at least `statistic`."""
    return upper_gamma(df / 2, statistic / 2)


def critical_value(tail: float, df: int) -> float:
    """What a chi-square of `df` degrees of freedom exceeds with probability `tail`, in (0, 1)."""
    return _root(lambda x: chi_square_tail(x, df) - tail, df + 10.0)


def noncentral_tail(statistic: float, df: int, noncentrality: float) -> float:
    """The same of a noncentral chi-square: of Poisson(noncentrality / 2) more pairs of degrees of freedom."""
    mean = noncentrality / 2
    if mean == 0:
        return chi_square_tail(statistic, df)
    spread = 12 * math.sqrt(mean) + 40  # standard deviations of the Poisson number, and a margin for small means
    total = 0.0
    for j in range(max(0, int(mean - spread)), int(mean + spread)):
        total += math.exp(j * math.log(mean) - mean - math.lgamma(j + 1)) * chi_square_tail(statistic, df + 2 * j)
    return min(total, 1.0)


@lru_cache(maxsize=64)
def noncentrality_found(tail: float, df: int, power: float) -> float:
    """How noncentral a chi-square has to be to exceed `critical_value(tail, df)` with probability `power` > `tail`."""
    limit = critical_value(tail, df)
    return _root(lambda value: power - noncentral_tail(limit, df, value), df + 10.0)


def _root(falling: Callable[[float], float], guess: float) -> float:
    """Where a function of numbers from 0 on, which falls from above 0 to below it, is 0."""
    low, high = 0.0, guess
    while falling(high) > 0:
        low, high = high, 2 * high
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
