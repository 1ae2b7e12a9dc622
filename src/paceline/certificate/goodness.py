"""Whether sampled texts follow the target's own distribution: every token's place in its law is uniform, or it is not.

One test is of drafts alone: `acceptance`, whether they stand as often as they should (see `betting`). Five are of
places, and differ in the order of the tokens that these are measured in:

- `drafted`: of tokens that a draft was checked for; first what the draft had too much of. What comes in place of a
  rejected draft shows here.
- `likelihood`: of all tokens, the likeliest first; what sharpens or flattens the text shows here.
- `recency`: of all tokens, the latest in the text first; what copies too much or too little shows here.
- `identity`: of all tokens, in order of their ids; what favours or drops tokens because of their value shows here.
- `serial`: as `likelihood`, apart for each quarter of the previous token's place: faults that cancel on average.

The last four look at nothing but tokens and laws, not at steps or drafts, so nothing that is reported of these can
hide a fault from them. A place's cell is counted given what came before it, so that counts over texts of any length,
which may end by a token of their own, are sums of martingale differences, and their chi-square is one in the limit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.certificate.betting import AcceptanceTest, acceptance_test
from paceline.certificate.places import DraftLaw, Law, Place, Recency, identity_place, likelihood_place
from paceline.certificate.tail import chi_square_tail, noncentrality_found

NUM_CELLS = 16
NUM_STRATA, NUM_STRATUM_CELLS = 4, 8  # of the previous token's place, and of the token's own given that
MIN_EXPECTED = 20  # of a cell: twice what is usual for chi-square, because tails of one in a million are asked for
POWER = 0.9
NUM_TESTS = 6
MIN_CELLS = 4  # of drafted tokens, of which there may be few
MIN_DRAFTED = MIN_CELLS * MIN_EXPECTED
MIN_TOKENS = NUM_CELLS * MIN_EXPECTED
Counts = NDArray[np.int64]  # [strata, cells]
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
    """`uniformity` lacks tests that had too few tokens. `num_tokens` were placed, the first of each answer not among
    them; `num_drafted` of them had a draft token.
    """

    false_alarm_rate: float
    num_answers: int
    num_tokens: int
    num_drafted: int
    acceptance: AcceptanceTest
    uniformity: tuple[UniformityTest, ...]
    num_impossible: int
    first_impossible: ImpossibleToken | None

    @property
    def tests(self) -> tuple[AcceptanceTest | UniformityTest, ...]:
        return self.acceptance, *self.uniformity


class FitTally:
    """Counts places of tokens, answer by answer. `seed` draws the uniform shares: equal ones give equal figures."""

    def __init__(self, seed: int) -> None:
        self._uniforms = np.random.default_rng(seed)
        self._bets: list[tuple[float, bool]] = []
        self._drafted: list[float] = []
        self._likelihood: list[float] = []
        self._recency: list[float] = []
        self._identity: list[float] = []
        self._previous: list[float] = []  # the likelihood place of the token before
        self._impossible: list[ImpossibleToken] = []
        self._num_answers = 0

    def add(
        self, prompt: Sequence[int], tokens: Sequence[int], laws: Iterable[Law], drafts: Mapping[int, DraftLaw]
    ) -> None:
        """One answer: `laws` has the target's processed law of each token, given all before it, and `drafts` by index
        the law of the draft token that was checked for it.

        The first token is drawn when the prompt has been read, without a draft: it counts as what came before the next.
        An answer with an impossible token is counted up to it.
        """
        answer, self._num_answers = self._num_answers, self._num_answers + 1
        recency, previous = Recency(prompt), 0.0
        for index, (token, law) in enumerate(zip(tokens, laws, strict=True)):
            if not law[token] > 0:
                self._impossible.append(ImpossibleToken(answer, index, token))
                return
            share = self._uniforms.random()
            place = _point(likelihood_place(law, token), share)
            if index > 0:
                self._likelihood.append(place)
                self._previous.append(previous)
                self._identity.append(_point(identity_place(law, token), share))
                self._recency.append(self._drawn(recency.place(law, token)))
                if index in drafts:
                    self._bets.append(drafts[index].bet(law, token))
                    self._drafted.append(self._drawn(drafts[index].place(law, token)))
            recency.extend(token)
            previous = place

    def result(self, false_alarm_rate: float) -> GoodnessOfFit:
        """The rate is shared equally among the tests (Bonferroni), so that all together stay below it."""
        share = false_alarm_rate / NUM_TESTS
        num_drafted_cells = min(NUM_CELLS, max(MIN_CELLS, len(self._drafted) // MIN_EXPECTED))
        counts = {
            "drafted": _counts(self._drafted, num_drafted_cells),
            "likelihood": _counts(self._likelihood, NUM_CELLS),
            "recency": _counts(self._recency, NUM_CELLS),
            "identity": _counts(self._identity, NUM_CELLS),
            "serial": _counts(self._likelihood, NUM_STRATUM_CELLS, self._previous),
        }
        tests = [uniformity_test(name, each, share) for name, each in counts.items()]
        return GoodnessOfFit(
            false_alarm_rate,
            self._num_answers,
            len(self._likelihood),
            len(self._drafted),
            acceptance_test([p for p, _ in self._bets], [hit for _, hit in self._bets], share),
            tuple(test for test in tests if test is not None),
            len(self._impossible),
            self._impossible[0] if self._impossible else None,
        )

    def _drawn(self, place: Place) -> float:
        return _point(place, self._uniforms.random())


def _point(place: Place, share: float) -> float:
    """The number in [0, 1) at a uniform share of the token's own probability. Two orders may use the same share: either
    number is uniform.
    """
    before, own = place
    return min(before + own * share, LARGEST)


def _counts(places: Sequence[float], num_cells: int, previous: Sequence[float] | None = None) -> Counts:
    """`[strata, cells]`; a stratum for each part of `previous`, one alone without it."""
    num_strata = 1 if previous is None else NUM_STRATA
    strata = np.zeros(len(places), np.int64) if previous is None else _cells(previous, num_strata)
    flat = np.bincount(strata * num_cells + _cells(places, num_cells), minlength=num_strata * num_cells)
    return flat.reshape(num_strata, num_cells)


def _cells(places: Sequence[float], num_cells: int) -> NDArray[np.int64]:
    return (np.asarray(places, np.float64) * num_cells).astype(np.int64)


def uniformity_test(name: str, counts: Counts, threshold: float) -> UniformityTest | None:
    """`counts`: of each stratum, how often each of its equally likely cells came. A stratum with
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
