"""The tests of fit on synthetic texts: how often they blame what is right, and whether they find what is wrong."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from paceline.certificate import MIN_TOKENS, FitTally, GoodnessOfFit, uniformity_test
from paceline.certificate.places import Law, Recency, likelihood_place

VOCAB_SIZE = 12
END = 0
PROMPT = (3, 7, 3, 9)
RATE = 1e-6
Bend = Callable[[Law, Sequence[int]], Law]  # from the target's law and the text so far to the law that is drawn from


def target_law(text: Sequence[int]) -> Law:
    """Depends on the last two tokens; some tokens have no probability."""
    return _law(*text[-2:])


@cache
def _law(*context: int) -> Law:
    generator = np.random.default_rng((5, *context))
    weights = generator.exponential(size=VOCAB_SIZE) ** 2
    weights[generator.integers(1, VOCAB_SIZE, 2)] = 0.0
    law: Law = weights / weights.sum()
    return law


def sampled(bend: Bend, num_answers: int, seed: int, rate: float = RATE) -> GoodnessOfFit:
    """Texts of up to 24 tokens, ended by END, drawn from bent laws and judged by the straight ones."""
    generator, tally = np.random.default_rng(seed), FitTally(seed)
    for _ in range(num_answers):
        text, laws = list(PROMPT), list[Law]()
        while len(laws) < 24 and (not laws or text[-1] != END):
            laws.append(target_law(text))
            text.append(int(generator.choice(VOCAB_SIZE, p=bend(laws[-1], text))))
        tally.add(PROMPT, text[len(PROMPT) :], laws)
    return tally.result(rate)


def straight(law: Law, text: Sequence[int]) -> Law:  # noqa: ARG001
    return law


def copying(law: Law, text: Sequence[int]) -> Law:
    """As if a drafted copy of the token before last stood more often than it may."""
    bent = law * 0.95
    bent[text[-2]] += 0.05 if law[text[-2]] > 0 else 0.0
    return bent / bent.sum()  # type: ignore[no-any-return]


def sharpened(law: Law, text: Sequence[int]) -> Law:  # noqa: ARG001
    """As if what is likely stood more often than it may."""
    bent = law**1.2
    return bent / bent.sum()  # type: ignore[no-any-return]


def turning(law: Law, text: Sequence[int]) -> Law:
    """Sharper behind a likely token and flatter behind an unlikely one: nothing is wrong on average."""
    before = target_law(text[:-1])
    is_likely = likelihood_place(before, text[-1])[0] < 0.4
    bent = np.where(law > 0, law, 1.0) ** (1.35 if is_likely else 0.65) * (law > 0)
    return bent / bent.sum()  # type: ignore[no-any-return]


def test_what_is_right_is_not_blamed() -> None:
    fit = sampled(straight, 300, 1)
    assert (fit.num_answers, fit.num_impossible, fit.first_impossible) == (300, 0, None)
    assert [test.name for test in fit.tests] == ["likelihood", "recency", "serial"]
    assert not any(test.has_failed for test in fit.tests)
    assert fit.tests[0].num_tokens == fit.num_tokens > 1000
    assert {test.threshold for test in fit.tests} == {RATE / 3}


def test_false_alarms_come_as_often_as_stated() -> None:
    # Three tests at 0.1 each: 40.6 of 150 trials if they are independent, 15 to 45 whatever they have in common.
    alarms = sum(any(test.has_failed for test in sampled(straight, 150, seed, 0.3).tests) for seed in range(150))
    assert 15 < alarms < 62  # four standard deviations above what is stated at most


@pytest.mark.parametrize(("bend", "finder"), [(copying, "recency"), (sharpened, "likelihood"), (turning, "serial")])
def test_what_is_wrong_is_found(bend: Bend, finder: str) -> None:
    failed = {test.name: test.p_value for test in sampled(bend, 1500, 2).tests if test.has_failed}
    assert finder in failed
    assert failed[finder] == min(failed.values())


def test_the_shift_that_is_said_to_be_found_is() -> None:
    generator, n, cells, threshold = np.random.default_rng(3), 4000, 16, 1e-3
    even = uniformity_test("even", np.full((1, cells), n // cells), threshold)
    assert even is not None
    shift = even.detectable_shift
    shifted = np.full(cells, 1 / cells - shift / (cells - 1))
    shifted[5] = 1 / cells + shift
    tests = [uniformity_test("shifted", generator.multinomial(n, shifted)[None], threshold) for _ in range(1000)]
    found = sum(test is not None and test.has_failed for test in tests)
    assert 860 < found < 940  # of 1000 with probability 0.9


def test_an_impossible_token_is_named() -> None:
    laws = [np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([0.2, 0.3, 0.5])]
    tally = FitTally(0)
    tally.add((1,), (0, 1, 2), laws)
    tally.add((1,), (0, 2, 1), laws)
    fit = tally.result(RATE)
    assert (fit.num_answers, fit.num_tokens, fit.num_impossible, fit.tests) == (2, 2, 1, ())
    assert fit.first_impossible is not None
    assert (fit.first_impossible.answer, fit.first_impossible.index, fit.first_impossible.token) == (1, 1, 2)
    with pytest.raises(ValueError, match="zip"):
        FitTally(0).add((1,), (0, 1), laws)


def test_too_few_tokens_are_not_tested() -> None:
    counts = np.full((1, 16), MIN_TOKENS // 16)
    assert uniformity_test("enough", counts, 0.1) is not None
    counts[0, 3] -= 1
    assert uniformity_test("too few", counts, 0.1) is None
    strata = np.array([[20] * 8, [3] * 8, [40] * 8])
    test = uniformity_test("strata", strata, 0.1)
    assert test is not None
    assert (test.num_tokens, test.df, test.statistic, test.p_value) == (480, 14, 0.0, 1.0)


def test_places() -> None:
    law = np.array([0.2, 0.4, 0.2, 0.1, 0.1])
    places = [likelihood_place(law, token) for token in range(5)]
    assert places == [pytest.approx(place) for place in [(0.4, 0.2), (0, 0.4), (0.6, 0.2), (0.8, 0.1), (0.9, 0.1)]]
    recency = Recency((2, 3, 2, 0))  # newest first: 0, 2, 3
    places = [recency.place(law, token) for token in range(5)]
    assert places == [pytest.approx(place) for place in [(0, 0.2), (0.5, 0.4), (0.2, 0.2), (0.4, 0.1), (0.9, 0.1)]]
    recency.extend(3)
    assert recency.place(law, 3) == pytest.approx((0, 0.1))
    assert recency.place(law, 0) == pytest.approx((0.1, 0.2))


def test_the_same_seed_gives_the_same_figures() -> None:
    assert sampled(straight, 40, 4) == sampled(straight, 40, 4)
    assert sampled(straight, 40, 4) != sampled(straight, 40, 5)
