"""Tail probabilities against closed forms, published quantiles and each other."""

import math

import pytest

from paceline.certificate.tail import (
    chi_square_tail,
    critical_value,
    noncentral_tail,
    noncentrality_found,
    upper_gamma,
)


@pytest.mark.parametrize("x", [0.0, 1e-9, 0.3, 1.0, 7.5, 40.0, 400.0])
def test_closed_forms(x: float) -> None:
    assert upper_gamma(1, x) == pytest.approx(math.exp(-x), rel=1e-11)
    assert upper_gamma(0.5, x) == pytest.approx(math.erfc(math.sqrt(x)), rel=1e-11)
    terms = [math.exp(n * math.log(x) - x - math.lgamma(n + 1)) if x else float(n == 0) for n in range(12)]
    assert upper_gamma(12, x) == pytest.approx(sum(terms), rel=1e-11)  # a Poisson number of mean x is below 12


@pytest.mark.parametrize(
    ("df", "tail", "quantile"),
    [
        (1, 0.05, 3.841),
        (1, 0.001, 10.828),
        (5, 0.01, 15.086),
        (15, 0.05, 24.996),
        (30, 0.001, 59.703),
        (100, 0.05, 124.342),
    ],
)
def test_published_quantiles(df: int, tail: float, quantile: float) -> None:
    assert critical_value(tail, df) == pytest.approx(quantile, abs=6e-4)
    assert chi_square_tail(critical_value(tail, df), df) == pytest.approx(tail, rel=1e-9)


def test_a_noncentral_tail_is_that_of_a_shifted_square() -> None:
    shift, limit = 2.5, 3.0  # of one degree of freedom: the square of a normal number around the shift
    both = math.erfc((limit - shift) / math.sqrt(2)) / 2 + math.erfc((limit + shift) / math.sqrt(2)) / 2
    assert noncentral_tail(limit**2, 1, shift**2) == pytest.approx(both, rel=1e-10)
    assert noncentral_tail(9.0, 4, 0.0) == chi_square_tail(9.0, 4)


def test_the_noncentrality_that_is_found() -> None:
    # Of one degree of freedom: the square of the two normal quantiles' sum, 1.959964 and 0.841621; what lies in the
    # other tail is of no account there.
    assert noncentrality_found(0.05, 1, 0.8) == pytest.approx((1.959964 + 0.841621) ** 2, rel=1e-5)
    value = noncentrality_found(1e-6, 15, 0.9)
    assert noncentral_tail(critical_value(1e-6, 15), 15, value) == pytest.approx(0.9, rel=1e-9)


@pytest.mark.parametrize(("a", "x"), [(0, 1), (-1, 1), (1, -1), (1, math.nan)])
def test_arguments_out_of_range(a: float, x: float) -> None:
    with pytest.raises(ValueError, match="expected a > 0"):
        upper_gamma(a, x)
