"""The rule `match` on a draft that was drawn with the target's own noise: how often it stands.

With one Gumbel noise g for both, token i is drawn from p and from q where log p_i + g_i and log q_i + g_i are both the
highest. That has the probability 1 / Σ_j max(p_j / p_i, q_j / q_i), and the sum over i lies between (1 − TV) / (1 + TV)
and 1 − TV (Daliri, Musco and Suresh, arXiv:2408.07978).
"""

import math

import numpy as np
import pytest
from chi_square import goodness_of_fit
from numpy.typing import NDArray

from paceline.acceptance import Law, MatchRule, Verification, reference
from paceline.acceptance.canonical import create_sampler
from paceline.acceptance.noise import Stream
from paceline.acceptance.reference import DrawParams
from paceline.acceptance.sampling import NativeSampler
from paceline.sampling_params import SamplingParams

SIZE = 12
EXACT = 1e-12
NUM_DRAWS = 4_000
PAIRS = [  # of parameters of the target and of the draft
    (DrawParams(), DrawParams()),
    (DrawParams(0.7), DrawParams(1.3)),
    (DrawParams(0.9, top_k=5), DrawParams(0.9, top_p=0.8)),
]
FALSE_ALARM = 1e-6 / (2 * len(PAIRS))

Row = NDArray[np.float32]


def distance(p: Law, q: Law) -> float:
    return 0.5 * float(np.abs(p - q).sum())


def agreement(p: Law, q: Law) -> Law:
    """For each token the probability that both draws are it."""
    both = np.zeros(len(p))
    for i in np.flatnonzero((p > 0) & (q > 0)):
        both[i] = 1 / np.maximum(p / p[i], q / q[i]).sum()
    return both


def laws(random: np.random.Generator) -> tuple[Law, Law]:
    """Alike or not, flat or peaked, with zeros or without."""
    p, q = (random.dirichlet(np.full(SIZE, random.choice([0.05, 0.5, 5.0]))) for _ in range(2))
    mixture = random.choice([0.0, 0.0, 0.5, 0.99])
    q = (1 - mixture) * q + mixture * p
    for law in (p, q):
        law[random.random(SIZE) < random.choice([0.0, 0.0, 0.5])] = 0
        law[law.argmax() if law.any() else 0] += 1e-3
        law /= law.sum()
    return p, q


def test_what_agrees_lies_within_the_bounds() -> None:
    random = np.random.default_rng(1)
    shares = []
    for _ in range(5_000):
        p, q = laws(random)
        both, far = agreement(p, q), distance(p, q)
        assert (both <= np.minimum(p, q) + EXACT).all()
        assert (1 - far) / (1 + far) - EXACT <= both.sum() <= 1 - far + EXACT
        shares.append(both.sum() / (1 - far) if far < 1 - EXACT else 1.0)
    assert min(shares) < 0.75, "laws for which the noise costs something are among these"


@pytest.mark.parametrize(("tv", "size"), [(0.0, 4), (0.3, 10), (0.5, 1000), (1.0, 4)])
def test_where_the_bounds_are_reached(tv: float, size: int) -> None:
    """The upper one by laws of two tokens; the lower one, nearly, by flat laws on sets that overlap."""
    p, q = np.array([1.0, 0.0]), np.array([1 - tv, tv])
    assert abs(agreement(p, q).sum() - (1 - tv)) < EXACT
    shift = round(tv * size)
    p, q = np.zeros(2 * size), np.zeros(2 * size)
    p[:size] = q[shift : size + shift] = 1 / size
    assert abs(distance(p, q) - shift / size) < EXACT
    assert abs(agreement(p, q).sum() - (1 - tv) / (1 + tv)) < EXACT


def accepted_tokens(
    target: Row, draft: Row, params: tuple[DrawParams, DrawParams], stream: Stream
) -> NDArray[np.int64]:
    """What `match` keeps of drafts of one token, each at a position of its own; SIZE where it keeps nothing."""
    ours, theirs = params
    fields = {name: getattr(ours, name) for name in ("temperature", "top_k", "top_p", "min_p")}
    sampler = create_sampler(SamplingParams(**fields), seed=5, prompt=(0,), vocab_size=SIZE, native=NativeSampler(SIZE))
    kept = list[int]()
    for position in range(1, NUM_DRAWS + 1):
        token = reference.sample(draft, theirs, sampler.seed, position, stream)
        outcome = MatchRule().accept(Verification(0, np.stack([target, target]), (token,), (-1,), position, sampler))
        kept.append(token if outcome.num_accepted else SIZE)
    return np.array(kept)


@pytest.mark.parametrize("params", PAIRS)
def test_the_products_noise_agrees_as_often(params: tuple[DrawParams, DrawParams]) -> None:
    """By counts of every token and of rejections, with the target's noise and with noise of the draft's own. For keys
    picked at random, a false alarm once in a million runs of all of these."""
    random = np.random.default_rng(2)
    target = random.normal(0, 1.5, SIZE).astype(np.float32)
    draft = (target + random.normal(0, 0.7, SIZE)).astype(np.float32)
    p, q = reference.law(target, params[0]), reference.law(draft, params[1])
    rates = []
    for stream, both in ((Stream.TARGET, agreement(p, q)), (Stream.DRAFT, p * q)):
        expected = np.append(both, 1 - both.sum())
        tokens = accepted_tokens(target, draft, params, stream)
        assert goodness_of_fit(tokens, expected) > FALSE_ALARM
        rates.append(both.sum())
    assert rates[0] > rates[1] + 0.1, "sharing the noise is worth it"
    assert goodness_of_fit(tokens, np.append(agreement(p, q), 1 - agreement(p, q).sum())) < FALSE_ALARM


def test_with_one_law_and_one_noise_everything_stands() -> None:
    row = np.random.default_rng(4).normal(0, 2, SIZE).astype(np.float32)
    params = (DrawParams(1.2, top_p=0.9), DrawParams(1.2, top_p=0.9))
    assert SIZE not in accepted_tokens(row, row, params, Stream.TARGET)
    assert math.isclose(agreement(*[reference.law(row, params[0])] * 2).sum(), 1.0)
