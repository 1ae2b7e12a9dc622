"""Comparisons, and what follows from the evidence."""

import pytest

from paceline.certificate import (
    AcceptanceTest,
    Certificate,
    ComparisonTally,
    Difference,
    DraftCounts,
    FailedAnswer,
    GoodnessOfFit,
    ImpossibleToken,
    UniformityTest,
    first_difference,
)

DRAFTS = DraftCounts(10, 40, 12, 1.5)
EQUAL = ComparisonTally()
EQUAL.add_equal(7)
GOOD = UniformityTest("likelihood", 400, 15.0, 15, 0.45, 1e-6, 0.1)
BAD = UniformityTest("recency", 400, 99.0, 15, 1e-14, 1e-6, 0.1)


@pytest.mark.parametrize(
    ("expected", "found", "index"),
    [((), (), None), ((1, 2), (1, 2), None), ((1, 2), (1, 3), 1), ((1, 2), (1,), 1), ((1,), (1, 2), 1), ((), (4,), 0)],
)
def test_first_difference(expected: tuple[int, ...], found: tuple[int, ...], index: int | None) -> None:
    assert first_difference(expected, found) == index


def test_the_first_difference_that_is_not_excused_is_shown() -> None:
    tally = ComparisonTally()
    tally.add_equal(5)
    excused, fault = Difference(1, 3, 8, 9, 0.001, True), Difference(2, 0, 8, 9, 4.0, False)
    tally.add_different(excused)
    assert tally.result().first == excused
    tally.add_different(fault)
    tally.add_different(Difference(3, 0, 8, 9, 4.0, False))
    result = tally.result()
    assert (result.num_answers, result.num_tokens, result.num_differing) == (4, 11, 3)
    assert (result.num_excused, result.num_faults, result.first) == (1, 2, fault)


def fit(*tests: UniformityTest, impossible: int = 0, num_drafted: int = 80) -> GoodnessOfFit:
    first = ImpossibleToken(0, 2, 9) if impossible else None
    bets = AcceptanceTest("acceptance", num_drafted, 30, 28.0, 0.6, 1e-6, 2.0)
    return GoodnessOfFit(3e-6, 20, 400, num_drafted, bets, tests, impossible, first)


def different(is_excused: bool) -> ComparisonTally:
    tally = ComparisonTally()
    tally.add_different(Difference(0, 3, 8, 9, 0.001, is_excused))
    return tally


@pytest.mark.parametrize(
    ("certificate", "verdict", "says"),
    [
        (Certificate(DRAFTS, EQUAL.result(), None), "certified", "every token is that of plain decoding"),
        (Certificate(DRAFTS, different(True).result(), None, numerics=0.01), "certified", "up to numerics"),
        (Certificate(DRAFTS, different(False).result(), None), "failed", "1 answer differs from"),
        (Certificate(DRAFTS, None, fit(GOOD)), "certified", "about once in 333,333 times at most"),
        (Certificate(DRAFTS, None, fit(GOOD, BAD)), "failed", "the recency test fails: p is 1e-14, less than 1e-06"),
        (Certificate(DRAFTS, None, fit(GOOD, impossible=2)), "failed", "2 tokens came that the target gives no"),
        (
            Certificate(DRAFTS, None, fit(GOOD, num_drafted=79)),
            "inconclusive",
            "400 tokens came to a test, 79 of them drafted, and it takes 320 and 80",
        ),
        (Certificate(DRAFTS, EQUAL.result(), None, (FailedAnswer(0, "NaN"),)), "failed", "ended in an error: NaN"),
        (Certificate(DRAFTS, EQUAL.result(), None, is_interrupted=True), "inconclusive", "interrupted"),
        (Certificate(DRAFTS, different(False).result(), None, is_interrupted=True), "failed", "differ"),
        (Certificate(DraftCounts(0, 0, 0, None), EQUAL.result(), None), "inconclusive", "no draft was ever tried"),
    ],
)
def test_verdict(certificate: Certificate, verdict: str, says: str) -> None:
    assert certificate.verdict == verdict
    assert says in certificate.statement


def test_an_interrupt_is_the_only_gap() -> None:
    """What else is missing might have come: no advice on it."""
    certificate = Certificate(DraftCounts(0, 0, 0, None), ComparisonTally().result(), None, is_interrupted=True)
    assert (certificate.gaps, certificate.statement) == (["it was interrupted"], "it was interrupted")
