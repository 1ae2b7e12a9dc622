"""The tests of fit on synthetic texts: how often they blame what is right, and whether they find what is wrong."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import numpy as np
import pytest

from paceline.certificate import MIN_DRAFTED, DraftLaw, FitTally, GoodnessOfFit, acceptance_test, uniformity_test
from paceline.certificate.places import Law, Recency, identity_place, likelihood_place

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
    """Texts of up to 24 tokens, ended by END, drawn from bent laws and judged by the straight ones. Every other token
    has a draft."""
    generator, tally = np.random.default_rng(seed), FitTally(seed)
    for _ in range(num_answers):
        text, laws, drafts = list(PROMPT), list[Law](), dict[int, DraftLaw]()
        while len(laws) < 24 and (not laws or text[-1] != END):
            if len(laws) % 2:
                drafts[len(laws)] = draft_law(text)
            laws.append(target_law(text))
            text.append(int(generator.choice(VOCAB_SIZE, p=bend(laws[-1], text))))
        tally.add(PROMPT, text[len(PROMPT) :], laws, drafts)
    return tally.result(rate)


def draft_law(text: Sequence[int]) -> DraftLaw:
    """The token before last, by chance or not."""
    if text[-1] % 2:
        return DraftLaw(np.array([text[-2]]), np.ones(1))
    return DraftLaw(np.array([text[-2], text[-1]]), np.array([0.7, 0.3]))


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


def shunning(law: Law, text: Sequence[int]) -> Law:  # noqa: ARG001
    """As if a drafted 11 were dropped now and then because it is one."""
    bent = law.copy()
    bent[11] *= 0.3
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
    assert [test.name for test in fit.tests] == ["acceptance", "drafted", "likelihood", "recency", "identity", "serial"]
    assert not any(test.has_failed for test in fit.tests)
    assert fit.uniformity[1].num_tokens == fit.num_tokens > 1000
    assert fit.uniformity[0].num_tokens == fit.acceptance.num_tokens == fit.num_drafted > 400
    assert {test.threshold for test in fit.tests} == {RATE / 6}


def test_false_alarms_come_as_often_as_stated() -> None:
    # Five chi-squares at 1/12 each: 28.2 of 80 trials if they are independent, 6.7 to 33 whatever they have in common.
    alarms = sum(any(test.has_failed for test in sampled(straight, 150, seed, 0.5).tests) for seed in range(80))
    assert 8 < alarms < 44


@pytest.mark.parametrize(
    ("bend", "finder"), [(copying, "recency"), (sharpened, "likelihood"), (shunning, "identity"), (turning, "serial")]
)
def test_what_is_wrong_is_found(bend: Bend, finder: str) -> None:
    failed = {test.name: test.p_value for test in sampled(bend, 1500, 2).uniformity if test.has_failed}
    assert finder in failed
    assert failed[finder] == min(failed.values())


def too_often(law: Law, text: Sequence[int]) -> Law:
    """Drafted tokens have twice the odds, and no others are touched."""
    if (len(text) - len(PROMPT)) % 2 == 0:
        return law
    draft = draft_law(text)
    bent = law.copy()
    bent[draft.ids[draft.probabilities >= law[draft.ids]]] *= 2
    return bent / bent.sum()  # type: ignore[no-any-return]


def test_drafts_that_stand_too_often_are_found_soonest_by_betting() -> None:
    tests = {test.name: test for test in sampled(too_often, 600, 2).tests}
    assert tests["acceptance"].has_failed
    assert tests["acceptance"].p_value == min(test.p_value for test in tests.values())


def test_a_bet_is_fair() -> None:
    # Under the law the mean of the fortune is 1, whatever the probabilities: here over all outcomes of three bets.
    probabilities, mean = (0.2, 0.7, 0.95), 0.0
    for outcome in product((False, True), repeat=3):
        chance = np.prod([p if hit else 1 - p for p, hit in zip(probabilities, outcome, strict=True)])
        result = acceptance_test(probabilities, outcome, 1e-3)
        assert result.num_expected == pytest.approx(1.85)
        mean += chance * max(1.0, 1 / result.p_value)
        assert result.detectable_odds is None  # three bets cannot win a thousand
    assert 1.0 <= mean < 2.0  # at most 1 for the fortune, and 1 for what is kept where it is below


def test_the_odds_that_are_said_to_be_found_are() -> None:
    generator, probabilities = np.random.default_rng(8), np.random.default_rng(9).uniform(0, 1, 400)
    odds = acceptance_test(probabilities, probabilities > 2, 1e-6).detectable_odds
    assert odds is not None
    tilted = odds * probabilities / (1 - probabilities + odds * probabilities)
    trials = [acceptance_test(probabilities, generator.random(400) < tilted, 1e-6) for _ in range(300)]
    assert sum(trial.has_failed for trial in trials) > 240  # nine of ten, less four standard deviations
    fair = [acceptance_test(probabilities, generator.random(400) < probabilities, 0.05) for _ in range(300)]
    assert sum(trial.has_failed for trial in fair) < 33  # 15 are expected at most


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
    tally.add((1,), (0, 1, 2), laws, {})
    tally.add((1,), (0, 2, 1), laws, {1: DraftLaw(np.array([2]), np.ones(1))})
    fit = tally.result(RATE)
    assert (fit.num_answers, fit.num_tokens, fit.num_impossible, fit.uniformity) == (2, 2, 1, ())
    assert (fit.num_drafted, fit.acceptance.num_tokens, fit.acceptance.p_value) == (0, 0, 1.0)
    assert fit.first_impossible is not None
    assert (fit.first_impossible.answer, fit.first_impossible.index, fit.first_impossible.token) == (1, 1, 2)
    with pytest.raises(ValueError, match="zip"):
        FitTally(0).add((1,), (0, 1), laws, {})


def test_too_few_tokens_are_not_tested() -> None:
    counts = np.full((1, 4), MIN_DRAFTED // 4)
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
    places = [identity_place(law, token) for token in range(5)]
    assert places == [pytest.approx(place) for place in [(0, 0.2), (0.2, 0.4), (0.6, 0.2), (0.8, 0.1), (0.9, 0.1)]]
    recency = Recency((2, 3, 2, 0))  # newest first: 0, 2, 3
    places = [recency.place(law, token) for token in range(5)]
    assert places == [pytest.approx(place) for place in [(0, 0.2), (0.5, 0.4), (0.2, 0.2), (0.4, 0.1), (0.9, 0.1)]]
    draft = DraftLaw(np.array([3, 1]), np.array([0.5, 0.6]))  # ratios of 5 and 1.5
    places = [draft.place(law, token) for token in range(5)]
    assert places == [pytest.approx(place) for place in [(0.5, 0.2), (0.1, 0.4), (0.7, 0.2), (0, 0.1), (0.9, 0.1)]]
    assert [draft.bet(law, token) for token in (3, 1, 0)] == [(0.5, True), (0.5, True), (0.5, False)]
    recency.extend(3)
    assert recency.place(law, 3) == pytest.approx((0, 0.1))
    assert recency.place(law, 0) == pytest.approx((0.1, 0.2))


def test_the_same_seed_gives_the_same_figures() -> None:
    assert sampled(straight, 40, 4) == sampled(straight, 40, 4)
    assert sampled(straight, 40, 4) != sampled(straight, 40, 5)
