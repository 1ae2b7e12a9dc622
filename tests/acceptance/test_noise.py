"""The noise: its range and resolution, the accuracy of its logarithm, and the statistics of its hash.

Every statistical test draws with fixed keys, so its verdict never changes from run to run; thresholds are those of a
false alarm in a million for keys picked at random.
"""

import math
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from paceline.acceptance.elementary import exp, log
from paceline.acceptance.noise import (
    MAX_POSITION,
    MAX_SEED,
    MAX_TOKEN,
    Stream,
    gumbel,
    row_key,
    sample_seed,
    uniform,
    uniform_of,
)

FALSE_ALARM = 1e-6
TOKENS = np.arange(100_000)
KEYS = [(0, 0), (1, 0), (0, 1), (1234, 17), (MAX_SEED, MAX_POSITION), (2**63, 2**32)]
# Neighbours in one part of the key: seed, position, token, stream.
NEIGHBOURS = [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (2**63, 0, 0, 0), (0, 2**62, 0, 0)]


def bits_of(seed: int, position: int, tokens: NDArray[np.int64], stream: int) -> NDArray[np.int64]:
    """The 53 bits of the uniforms."""
    return (uniform(seed, position, tokens, Stream(stream)) * 2.0**53).astype(np.int64)


def largest_deviation(num_comparisons: int) -> float:
    """What a standard normal number exceeds, either way, in none of so many tests but for one in a million."""
    return -NormalDist().inv_cdf(FALSE_ALARM / (2 * num_comparisons))


def test_known_values() -> None:
    tokens = np.array([0, 1, 151_935, MAX_TOKEN])
    found = [float(u).hex() for u in uniform(42, 7, tokens, Stream.TARGET)]
    assert found == KNOWN_UNIFORMS
    assert [float(g).hex() for g in gumbel(42, 7, tokens, Stream.TARGET)] == KNOWN_GUMBELS


def test_the_hash_as_unsigned_arithmetic() -> None:
    """Written once more, in Python's integers, from the module's description."""

    def mixed(x: int, b: int = 0) -> int:
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MAX_SEED) ^ b
        x = (x ^ x >> 27) * 0x94D049BB133111EB & MAX_SEED
        return x ^ x >> 31

    for seed, position in KEYS:
        for stream in Stream:
            a, b = row_key(seed, position, stream)
            for token in (0, 1, 77_777, MAX_TOKEN):
                n = mixed((token * 0x9E3779B97F4A7C15 + a) & MAX_SEED, b) >> 11
                assert uniform_of(seed, position, token, stream) == (n or 0.5) * 2.0**-53


def test_uniforms_lie_inside_and_have_53_bits() -> None:
    all_bits = 0
    for seed, position in KEYS:
        u = uniform(seed, position, TOKENS, Stream.TARGET)
        assert u.dtype == np.float64
        assert u.min() > 0 and u.max() < 1
        all_bits |= int(np.bitwise_or.reduce((u * 2.0**53).astype(np.int64)))
    assert all_bits == 2**53 - 1


def test_no_number_repeats_within_a_row() -> None:
    assert len(np.unique(bits_of(3, 4, np.arange(2**18), 0))) == 2**18


@pytest.mark.parametrize(("seed", "position"), [(-1, 0), (2**64, 0), (0, -1), (0, 2**63)])
def test_keys_out_of_range(seed: int, position: int) -> None:
    with pytest.raises(ValueError, match="expected an integer from 0 to"):
        uniform(seed, position, TOKENS, Stream.TARGET)


def test_logarithm_is_within_one_unit_in_the_last_place() -> None:
    random = np.random.default_rng(1)
    x = np.concatenate(
        [
            random.random(100_000) + 2.0**-54,
            1 - random.random(10_000) * 1e-9,
            np.exp(random.uniform(-700, 700, 50_000)),
            [2.0**-1022, 2.0**-54, 2.0**-53, 0.5, math.sqrt(0.5), 1 - 2.0**-53, 1.0, 1 + 2.0**-52, 2.0, 37.4],
        ]
    )
    expected = np.array([math.log(value) for value in x])
    assert np.all(np.abs(log(x) - expected) <= np.spacing(np.abs(expected)))
    assert log(np.array([1.0]))[0] == 0


def test_exponential_is_within_two_units_in_the_last_place() -> None:
    x = np.concatenate([np.random.default_rng(2).uniform(-700, 0, 50_000), np.linspace(-31, 0, 50_000), [0.0, 700.0]])
    expected = np.array([math.exp(value) for value in x])
    assert np.all(np.abs(exp(x) - expected) <= 2 * np.spacing(expected))
    assert exp(np.array([0.0, -700.1, -math.inf])).tolist() == [1, 0, 0]


def test_gumbel_is_accurate_and_bounded() -> None:
    u = uniform(5, 6, TOKENS, Stream.TARGET)
    expected = np.array([-math.log(-math.log(value)) for value in u])
    assert np.all(np.abs(gumbel(5, 6, TOKENS, Stream.TARGET) - expected) < 1e-14)
    lowest, highest = -log(-log(np.array([2.0**-54, 1 - 2.0**-53])))
    assert -3.7 < lowest < highest < 36.8


@pytest.mark.parametrize("flip", ["seed", "position", "token", "stream"])
def test_avalanche(flip: str) -> None:
    """One bit of any part of the key flips each of the 53 bits with probability 1/2."""
    random = np.random.default_rng(3)
    num_bits = {"seed": 64, "position": 63, "token": 31, "stream": 2}[flip]
    num_keys = 64
    tokens = random.integers(0, 2**31, 64)
    flips = np.zeros((num_bits, 53))
    for _ in range(num_keys):
        seed, position = int(random.integers(0, 2**63)), int(random.integers(0, 2**20))
        base = bits_of(seed, position, tokens, 0)
        for i in range(num_bits):
            seed_bit, position_bit, token_bit, stream_bit = ((1 << i) * (flip == name) for name in FLIPS)
            other = bits_of(seed ^ seed_bit, position ^ position_bit, tokens ^ token_bit, stream_bit)
            flips[i] += ((base ^ other)[:, None] >> np.arange(53) & 1).sum(axis=0)
    count = num_keys * len(tokens)
    deviations = (flips - count / 2) / math.sqrt(count / 4)
    assert np.abs(deviations).max() < largest_deviation(flips.size)


def test_uniformity() -> None:
    """Chi-square of 1,024 cells, of the upper and the lower bits, over one row, over positions and over seeds."""
    samples = [bits_of(9, 0, np.arange(2**18), 0), bits_of(0, MAX_POSITION, np.arange(2**18) * 8191, 3)]
    samples.append(np.concatenate([bits_of(7, position, np.arange(64), 0) for position in range(4096)]))
    samples.append(np.concatenate([bits_of(seed, 11, np.arange(64), 1) for seed in range(4096)]))
    limit = largest_deviation(2 * len(samples))
    for bits in samples:
        for cells in (bits >> 43, bits & 1023):
            expected = len(cells) / 1024
            chi_square = float(((np.bincount(cells, minlength=1024) - expected) ** 2).sum() / expected)
            # Wilson and Hilferty: the cube root of chi-square over its degrees of freedom is nearly normal.
            normal = ((chi_square / 1023) ** (1 / 3) - (1 - 2 / (9 * 1023))) / math.sqrt(2 / (9 * 1023))
            assert abs(normal) < limit


@pytest.mark.parametrize("step", NEIGHBOURS)
def test_neighbours_are_not_correlated(step: tuple[int, int, int, int]) -> None:
    """Of neighbouring keys, and of the same with tokens shifted by up to 3."""
    limit = largest_deviation(len(NEIGHBOURS) * 8 * 4)
    for key in range(8):
        u = uniform(key, 3 * key, TOKENS, Stream.TARGET) - 0.5
        seed, position, token, stream = key + step[0], 3 * key + step[1], step[2], Stream(step[3])
        for shift in range(4):
            v = uniform(seed, position, TOKENS + token + shift, stream) - 0.5
            correlation = float((u * v).sum()) * 12 / math.sqrt(len(TOKENS))
            assert abs(correlation) < limit


def test_gumbel_moments() -> None:
    g = np.concatenate([gumbel(seed, 5, TOKENS, Stream.DRAFT) for seed in range(5)])
    limit = largest_deviation(2)
    variance = math.pi**2 / 6
    assert abs(g.mean() - 0.5772156649015329) < limit * math.sqrt(variance / len(g))
    # The fourth central moment of the Gumbel distribution is 27/5 times its squared variance.
    assert abs(g.var() - variance) < limit * variance * math.sqrt((27 / 5 - 1) / len(g))


def test_sample_seeds_differ() -> None:
    assert sample_seed(5, 0) == 5
    seeds = {sample_seed(seed, i) for seed in (*range(20), MAX_SEED) for i in range(200)}
    assert len(seeds) == 21 * 200
    assert all(0 <= seed <= MAX_SEED for seed in seeds)
    with pytest.raises(ValueError, match="choice is -1"):
        sample_seed(5, -1)


def test_torch_has_the_same_bits() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tokens = torch.arange(200_000)
    for seed, position in KEYS:
        for stream in Stream:
            expected = gumbel(seed, position, tokens.numpy(), stream)
            assert (gumbel(seed, position, tokens, stream).numpy() == expected).all()


FLIPS = ("seed", "position", "token", "stream")
KNOWN_UNIFORMS = ["0x1.fbe813afdd0f7p-1", "0x1.40975934bdc0bp-1", "0x1.c8ee633e42b47p-1", "0x1.77215ea6012ccp-2"]
KNOWN_GUMBELS = ["0x1.34cb952683e8cp+2", "0x1.84951229bbeb8p-1", "0x1.16317a1a2531bp+1", "-0x1.128f51fc36fddp-8"]
