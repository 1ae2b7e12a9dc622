"""Whether sampled texts follow the target's own distribution: every token's place in its law is uniform, or it is not.

Nothing but tokens and laws is looked at: no draft, no step, no acceptance. Which tokens shared a step says something
about the tokens behind them under the rule `block`, so counting by steps would find faults where there are none. A
place's cell is counted given what came before it, so that counts over texts of any length, which may end by a token of
their own, are sums of martingale differences, and their chi-square is one in the limit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.certificate.places import Law, Place, Recency, likelihood_place
from paceline.certificate.tail import chi_square_tail, noncentrality_found

NUM_CELLS = 16
NUM_STRATA, NUM_STRATUM_CELLS = 4, 8  # of the previous token's place, and of the token's own given that
MIN_EXPECTED = 20  # of a cell: twice what is usual for chi-square, because tails of one in a million are asked for
POWER = 0.9
NUM_TESTS = 3
MIN_TOKENS = NUM_CELLS * MIN_EXPECTED
LARGEST = 1 - 2.0**-53  # below 1: sums of probabilities round


@dataclass(frozen=True, slots=True)
class UniformityTest:
    """Pearson's chi-square of equally likely cells, in one stratum or several.

    It fails below `threshold`, this test's share of the false-alarm rate. `detectable_shift`: the probability that has
    to move from all other cells into one, in every stratum, for the test to fail with probability 0.9.
    """

    name: str
    num_tokens: int
    statistic: float
    df: int
    p_value: float
    threshold: float
    detectable_shift: float

    @property
    def has_failed(self) -> bool:
        return self.p_value < self.threshold


@dataclass(frozen=True, slots=True)
class ImpossibleToken:
    """A token that the target's law gives no probability. `answer` and `index` as they were counted."""

    answer: int
    index: int
    token: int


@dataclass(frozen=True, slots=True)
class GoodnessOfFit:
    """`tests` is empty where there were too few tokens. `num_tokens` were placed; the first of each answer is not."""

    false_alarm_rate: float
    num_answers: int
    num_tokens: int
    tests: tuple[UniformityTest, ...]
    num_impossible: int
    first_impossible: ImpossibleToken | None


class FitTally:
    """Counts places of tokens, answer by answer. `seed` draws the uniform shares: equal ones give equal figures."""

    def __init__(self, seed: int) -> None:
        self._uniforms = np.random.default_rng(seed)
        self._likelihood = np.zeros((1, NUM_CELLS), np.int64)
        self._recency = np.zeros((1, NUM_CELLS), np.int64)
        self._serial = np.zeros((NUM_STRATA, NUM_STRATUM_CELLS), np.int64)
        self._impossible: list[ImpossibleToken] = []
        self._num_answers = 0

    @property
    def num_tokens(self) -> int:
        return int(self._likelihood.sum())

    def add(self, prompt: Sequence[int], tokens: Sequence[int], laws: Iterable[Law]) -> None:
        """One answer: `laws` has the target's processed law of each token, given all before it.

        The first token is drawn when the prompt has been read, without a draft: it counts as what came before the next.
        An answer with an impossible token is counted up to it.
        """
        answer, self._num_answers = self._num_answers, self._num_answers + 1
        recency, previous = Recency(prompt), 0.0
        for index, (token, law) in enumerate(zip(tokens, laws, strict=True)):
            if not law[token] > 0:
                self._impossible.append(ImpossibleToken(answer, index, token))
                return
            place = self._drawn(likelihood_place(law, token))
            if index > 0:
                self._likelihood[0, int(place * NUM_CELLS)] += 1
                self._recency[0, int(self._drawn(recency.place(law, token)) * NUM_CELLS)] += 1
                self._serial[int(previous * NUM_STRATA), int(place * NUM_STRATUM_CELLS)] += 1
            recency.extend(token)
            previous = place

    def result(self, false_alarm_rate: float) -> GoodnessOfFit:
        """The rate is shared equally among the tests (Bonferroni), so that all together stay below it."""
        share = false_alarm_rate / NUM_TESTS
        named = {"likelihood": self._likelihood, "recency": self._recency, "serial": self._serial}
        tests = [uniformity_test(name, counts, share) for name, counts in named.items()]
        return GoodnessOfFit(
            false_alarm_rate,
            self._num_answers,
            self.num_tokens,
            tuple(test for test in tests if test is not None),
            len(self._impossible),
            self._impossible[0] if self._impossible else None,
        )

    def _drawn(self, place: Place) -> float:
        before, own = place
        return min(before + own * self._uniforms.random(), LARGEST)


def uniformity_test(name: str, counts: NDArray[np.int64], threshold: float) -> UniformityTest | None:
    """`counts`, `[strata, cells]`: of each stratum, how often each of its equally likely cells came. A stratum with
    fewer than MIN_EXPECTED for a cell is left out; None where none is left.
    """
    num_cells = counts.shape[1]
    counts = counts[counts.sum(axis=1) >= MIN_EXPECTED * num_cells]
    if not len(counts):
        return None
    expected = counts.sum(axis=1, keepdims=True) / num_cells
    statistic = float(((counts - expected) ** 2 / expected).sum())
    df, num_tokens = len(counts) * (num_cells - 1), int(counts.sum())
    noncentrality = noncentrality_found(threshold, df, POWER)
    # One cell with `shift` more and the others with an equal part of it less: n · shift² · cells² / (cells − 1).
    shift = float(np.sqrt(noncentrality * (num_cells - 1) / num_tokens)) / num_cells
    tail = chi_square_tail(statistic, df)
    return UniformityTest(name, num_tokens, statistic, df, tail, threshold, min(shift, 1 - 1 / num_cells))
