"""The canonical sampler's reference: truncations against definitions in exact fractions, draws against the law."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paceline.acceptance import NonFiniteLogitsError
from paceline.acceptance.noise import Stream, gumbel
from paceline.acceptance.reference import (
    DrawParams,
    NothingAllowedError,
    Replacements,
    law,
    process,
    sample,
)

INF = math.inf


def row(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def kept(logits: NDArray[np.float32], **params: Any) -> list[int]:
    return np.flatnonzero(law(logits, DrawParams(**params))).tolist()


def kept_by_definition(p: list[Fraction], top_k: int, top_p: Fraction, min_p: Fraction) -> list[int]:
    """Min-p, top-k, then the smallest set of the rest that reaches top-p of it."""
    order = sorted((i for i in range(len(p)) if p[i] >= min_p * max(p)), key=lambda i: (-p[i], i))
    order = order[: top_k or len(p)]
    total, mass = sum(p[i] for i in order), Fraction(0)
    nucleus = []
    for i in order:
        if mass >= top_p * total:
            break
        nucleus.append(i)
        mass += p[i]
    return sorted(nucleus)


@pytest.mark.parametrize("masses", [(8, 4, 2, 1), (1, 1, 1, 1), (5, 1, 5, 1, 1), (1, 3, 9, 27, 81), (7,)])
def test_truncation_is_the_definition(masses: tuple[int, ...]) -> None:
    p = [Fraction(mass, sum(masses)) for mass in masses]
    logits = np.log(np.array(masses, np.float64)).astype(np.float32)
    # Away from where rounded logarithms could decide.
    tops = (Fraction(1), Fraction(97, 100), Fraction(71, 100), Fraction(37, 100), Fraction(1, 1000))
    minima = (Fraction(0), Fraction(3, 100), Fraction(13, 100), Fraction(46, 100), Fraction(99, 100))
    for top_k, top_p, min_p in product((0, 1, 2, 3, 50), tops, minima):
        expected = kept_by_definition(p, top_k, top_p, min_p)
        assert kept(logits, top_k=top_k, top_p=float(top_p), min_p=float(min_p)) == expected


def test_the_law_is_the_softmax_of_what_is_kept() -> None:
    logits = np.random.default_rng(1).normal(0, 2, 500).astype(np.float32)
    for temperature in (0.3, 1.0, 1.7):
        z = logits.astype(np.float64) / temperature
        expected = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        np.testing.assert_allclose(law(logits, DrawParams(temperature)), expected, rtol=1e-13)
        p = law(logits, DrawParams(temperature, top_k=20, top_p=0.9))
        np.testing.assert_allclose(p, np.where(p > 0, expected, 0) / expected[p > 0].sum(), rtol=1e-13)
        assert abs(p.sum() - 1) < 1e-14


def test_ties_go_to_the_lowest_ids() -> None:
    flat = np.zeros(8, np.float32)
    assert kept(flat, top_k=3) == [0, 1, 2]
    assert kept(flat, top_p=0.5) == [0, 1, 2, 3]
    assert kept(flat, top_p=0.51) == [0, 1, 2, 3, 4]
    assert kept(flat, top_p=1e-9) == [0]
    assert kept(row(0, 1, 1, 0, 1), top_k=2) == [1, 2]
    assert kept(row(0, 1, 1, 0, 1), min_p=1) == [1, 2, 4]
    assert sample(row(0, 1, 1), DrawParams(0.0), 1, 2) == 1


def test_zero_and_minus_zero_are_one_logit() -> None:
    assert kept(row(-0.0, 0.0, -0.0, 0.0), top_k=2) == [0, 1]
    assert sample(row(-1, -0.0, 0.0), DrawParams(0.0), 1, 2) == 1


def test_draws_are_the_argmax_of_noise() -> None:
    logits = np.random.default_rng(2).normal(0, 1, 50).astype(np.float32)
    for position in range(200):
        z = logits.astype(np.float64) / 0.7
        g = gumbel(3, position, np.arange(50), Stream.DRAFT)
        assert sample(logits, DrawParams(0.7), 3, position, Stream.DRAFT) == int(np.argmax(z + g))


def test_draws_follow_the_law() -> None:
    """Chi-square over fixed keys, with the threshold of a false alarm in a million: 5 degrees of freedom, 37.3."""
    logits = row(2, 1, 0, 0.5, -1, -0.3, -9)
    params = DrawParams(1.3, top_k=6)
    p = law(logits, params)
    count = 2_000
    counts = Counter(sample(logits, params, 99, position) for position in range(count))
    assert counts.keys() == set(np.flatnonzero(p).tolist())
    assert sum((counts[i] - count * p[i]) ** 2 / (count * p[i]) for i in counts) < 37.3


def test_masked_ids_are_never_drawn() -> None:
    logits = row(-INF, 3, -INF, 1)
    for params in (DrawParams(), DrawParams(top_k=4), DrawParams(top_p=0.999999), DrawParams(1e4), DrawParams(0.0)):
        assert set(kept(logits, **_fields(params))) <= {1, 3}
        assert {sample(logits, params, 1, position) for position in range(50)} <= {1, 3}
    only = row(-INF, -INF, -5, -INF)
    assert [sample(only, DrawParams(1.0), 1, position) for position in range(20)] == [2] * 20


def _fields(params: DrawParams) -> dict[str, Any]:
    return {name: getattr(params, name) for name in ("temperature", "top_k", "top_p", "min_p")}


def test_extreme_temperatures() -> None:
    logits = np.random.default_rng(4).normal(0, 3, 1000).astype(np.float32)
    best = int(logits.argmax())
    assert {sample(logits, DrawParams(1e-6), 1, position) for position in range(50)} == {best}
    assert len({sample(logits, DrawParams(1e4), 1, position) for position in range(200)}) > 150
    assert abs(law(logits, DrawParams(2.0**64)) - 1e-3).max() < 1e-15


@pytest.mark.parametrize("fault", [math.nan, INF])
def test_faulty_logits(fault: float) -> None:
    for temperature in (0.0, 1.0):
        with pytest.raises(NonFiniteLogitsError):
            sample(row(1, fault, 2), DrawParams(temperature), 1, 2)
        with pytest.raises(NonFiniteLogitsError):
            law(row(1, fault, 2), DrawParams(temperature))


def test_nothing_allowed() -> None:
    with pytest.raises(NothingAllowedError, match="no token id is allowed"):
        sample(row(-INF, -INF), DrawParams(), 1, 2)


def test_process_replaces_then_masks() -> None:
    logits = np.arange(40, dtype=np.float32)
    replacements = Replacements(np.array([3, 35], np.int32), row(-INF, 99))
    mask = np.array([0xFFFFFFFD, 0x8], np.uint32)  # id 1 and ids 32 to 34 and 36 on are not allowed
    expected = logits.copy()
    expected[[3, 35]] = -INF, 99
    expected[[1, 32, 33, 34, 36, 37, 38, 39]] = -INF
    assert process(logits, replacements, mask).tolist() == expected.tolist()
    assert logits.tolist() == list(range(40))
    with pytest.raises(NonFiniteLogitsError):
        process(row(1, -INF))
    with pytest.raises(NonFiniteLogitsError):
        process(logits, Replacements(np.array([3], np.int32), row(math.nan)))


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": -1.0},
        {"temperature": math.nan},
        {"temperature": 1e-30},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"min_p": 1.5},
    ],
)
def test_parameters_out_of_range(params: dict[str, Any]) -> None:
    (name,) = params
    with pytest.raises(ValueError, match=f"{name} is .*expected"):
        DrawParams(**params)


def test_torch_draws_the_same_tokens() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    random = np.random.default_rng(5)
    for params in (DrawParams(), DrawParams(0.8, top_p=0.95), DrawParams(0.7, 40, 0.9, 0.01), DrawParams(0.0)):
        for position in range(50):
            logits = np.round(random.normal(0, 3, 2000).astype(np.float32), int(random.integers(0, 4)))
            logits[random.random(2000) < 0.1] = -INF
            tensor = torch.from_numpy(logits)
            assert sample(tensor, params, 7, position) == sample(logits, params, 7, position)
            assert ((law(tensor, params).numpy() > 0) == (law(logits, params) > 0)).all()
