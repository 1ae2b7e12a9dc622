"""The compiled sampler against the reference, token for token, on every instruction set that runs here."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from samplers import make_decoder

from paceline import _native
from paceline.acceptance import NonFiniteLogitsError
from paceline.acceptance.noise import MAX_POSITION, MAX_SEED, Stream, gumbel
from paceline.acceptance.reference import (
    DrawParams,
    NothingAllowedError,
    Replacements,
    law,
    process,
    sample,
    truncated,
)
from paceline.acceptance.sampling import NOT_FINITE, NOTHING_ALLOWED, Draw, NativeSampler

INF = math.inf
ISAS = _native.runnable_isas()
SIZES = (1, 2, 63, 64, 65, 500, 1031)
TEMPERATURES = (0, 1e-6, 0.1, 0.7, 0.8, 1, 1.5, 10, 1e4, 2.0**-64, 2.0**64)
TOP_KS = (0, 0, 1, 2, 5, 50, 1031, 5000)
TOP_PS = (1, 1, 0.95, 0.5, 0.1, 1e-9, 0.999999, 1 - 2.0**-53, 5e-324)
MIN_PS = (0, 0, 0.05, 0.5, 1, 1e-300)


def draw_logits(random: np.random.Generator, size: int) -> NDArray[np.float32]:
    """Of any kind: narrow and wide, with many ties, all equal, with a peak, very small and very large."""
    logits = random.normal(0, random.choice([0.01, 1, 3, 10]), size).astype(np.float32)
    kind = random.integers(7)
    if kind == 0:
        logits = np.round(logits)
    elif kind == 1:
        logits[:] = logits[0]
    elif kind == 2:
        logits[random.integers(size)] += 30
    elif kind == 3:
        logits *= np.float32(10.0 ** random.integers(-40, 37))
    return logits


def draw_params(random: np.random.Generator) -> DrawParams:
    choices = (TEMPERATURES, TOP_KS, TOP_PS, MIN_PS)
    temperature, top_k, top_p, min_p = (values[random.integers(len(values))] for values in choices)
    return DrawParams(temperature, int(top_k), top_p, min_p)


def draw_edits(random: np.random.Generator, size: int) -> tuple[Replacements | None, NDArray[np.uint32] | None]:
    replacements = mask = None
    if random.random() < 0.2:
        ids = random.permutation(size)[: random.integers(1, size + 1)].astype(np.int32)
        values = random.normal(0, 5, len(ids)).astype(np.float32)
        values[random.random(len(ids)) < 0.3] = -INF
        replacements = Replacements(ids, values)
    if random.random() < 0.2:
        mask = packed(random.random(size) < random.choice([0.0, 0.01, 0.5, 0.99]))
    return replacements, mask


def packed(is_allowed: NDArray[np.bool_]) -> NDArray[np.uint32]:
    bits = np.zeros(-(-len(is_allowed) // 32) * 32, np.bool_)
    bits[: len(is_allowed)] = is_allowed
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)


def tokens_of_reference(logits: NDArray[np.float32], params: DrawParams, seed: int, positions: range) -> Iterator[int]:
    """What `sample` gives at each position; the truncation, which depends on none, is made once."""
    if not (logits > -INF).any():
        yield from [NOTHING_ALLOWED] * len(positions)
    elif params.temperature == 0:
        yield from [int(logits.argmax())] * len(positions)
    else:
        z = truncated(logits, params)
        ids = np.flatnonzero(z > -INF)  # of which alone noise is needed
        for position in positions:
            yield int(ids[np.argmax(z[ids] + gumbel(seed, position, ids, Stream.TARGET))])


def check_rows(random: np.random.Generator, num_rows: int, num_positions: int) -> None:
    samplers = {size: [NativeSampler(size, isa) for isa in ISAS] for size in SIZES}
    for _ in range(num_rows):
        size = SIZES[random.integers(len(SIZES))]
        raw, params = draw_logits(random, size), draw_params(random)
        replacements, mask = draw_edits(random, size)
        seed, first = int(random.integers(0, 2**63)), int(random.integers(0, 2**40))
        positions = range(first, first + num_positions)
        processed = process(raw, replacements, mask)
        expected = list(tokens_of_reference(processed, params, seed, positions))
        draws = [Draw(params, seed, position, Stream.TARGET, replacements, mask) for position in positions]
        for sampler in samplers[size]:
            found = sampler.sample_rows(raw, [0] * num_positions, draws)
            assert found == expected, (size, params)


def test_tokens_are_those_of_the_reference() -> None:
    check_rows(np.random.default_rng(1), 1000, 40)


@pytest.mark.slow
def test_tokens_are_those_of_the_reference_at_length() -> None:
    check_rows(np.random.default_rng(2), 50_000, 100)


@pytest.mark.parametrize("isa", ISAS)
def test_whole_vocabularies(isa: str) -> None:
    """Sizes at which every way of narrowing candidates down is taken, with `sample` itself as the reference."""
    random = np.random.default_rng(3)
    size = 50_000
    sampler = NativeSampler(size, isa)
    settings: list[dict[str, Any]] = [{}, {"top_p": 0.95}, {"top_p": 0.2}, {"top_k": 50}, {"top_k": 3000, "top_p": 0.9}]
    settings += [{"min_p": 0.02}, {"min_p": 0.02, "top_p": 0.8}, {"top_p": 1 - 1e-12}, {"top_k": 49_999}]
    for deviation in (0.0, 0.5, 3.0):
        logits = random.normal(0, deviation, size).astype(np.float32)
        for setting in settings:
            params = DrawParams(0.8, **setting)
            for position in range(2):
                assert sampler.sample(logits, Draw(params, 5, position)) == sample(logits, params, 5, position)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("size", "deviation"), [(200, 0.5), (1031, 2.0), (20_000, 1.0)])
def test_top_p_at_the_edge_of_the_winner(isa: str, size: int, deviation: float) -> None:
    """Top-p that just keeps the token of the best noise, and just does not, where no estimate can tell."""
    random = np.random.default_rng(8)
    sampler = NativeSampler(size, isa)
    is_kept = {True: 0, False: 0}
    for position in range(12):
        logits = random.normal(0, deviation, size).astype(np.float32)
        winner = sample(logits, DrawParams(0.8), 2, position)
        weights = np.round(np.exp((logits.astype(np.float64) - logits.max()) / 0.8) * 2.0**42).astype(np.int64)
        is_above = (logits > logits[winner]) | ((logits == logits[winner]) & (np.arange(size) < winner))
        edge = int(weights[is_above].sum()) / int(weights.sum())
        if edge == 0:
            continue
        for shift in (-1e-3, -1e-5, -1e-9, -1e-13, 0, 1e-13, 1e-9, 1e-5, 1e-3):
            params = DrawParams(0.8, top_p=edge * (1 + shift))
            token = sample(logits, params, 2, position)
            assert sampler.sample(logits, Draw(params, 2, position)) == token
            is_kept[token == winner] += 1
    assert min(is_kept.values()) > 10


def test_every_part_of_the_key_counts() -> None:
    logits = np.zeros(1000, np.float32)
    sampler = NativeSampler(1000)
    keys = [(seed, position) for seed in (0, 1, MAX_SEED) for position in (0, 1, MAX_POSITION)]
    tokens = {}
    for seed, position in keys:
        for stream in Stream:
            token = sampler.sample(logits, Draw(DrawParams(), seed, position, stream))
            assert token == sample(logits, DrawParams(), seed, position, stream)
            tokens[seed, position, stream] = token
    assert len(set(tokens.values())) > len(tokens) * 0.9


def test_draws_follow_the_law() -> None:
    """Chi-square over fixed keys, with the threshold of a false alarm in a million: Wilson and Hilferty's normal
    approximation of chi-square reaches 4.75."""
    logits = np.random.default_rng(6).normal(0, 1.5, 64).astype(np.float32)
    params = DrawParams(0.9, top_p=0.98)
    p = law(logits, params)
    ids = np.flatnonzero(p)
    count = 100_000
    tokens = NativeSampler(64).sample_rows(
        logits, [0] * count, [Draw(params, 1, position) for position in range(count)]
    )
    counts = np.bincount(tokens, minlength=64)
    assert counts[p == 0].sum() == 0
    chi_square = float(((counts - count * p)[ids] ** 2 / (count * p[ids])).sum())
    free = len(ids) - 1
    assert ((chi_square / free) ** (1 / 3) - (1 - 2 / (9 * free))) / math.sqrt(2 / (9 * free)) < 4.75


def test_padding_is_never_looked_at() -> None:
    logits = np.full(100, np.nan, np.float32)
    logits[:90] = np.arange(90)
    sampler = NativeSampler(90)
    assert sampler.sample(logits, Draw(DrawParams(0.0), 1, 2)) == 89
    assert sampler.sample(logits, Draw(DrawParams(1.0), 1, 2)) < 90


@pytest.mark.parametrize("size", [1, 7, 64, 200])
@pytest.mark.parametrize("fault", [math.nan, INF, -INF])
def test_faulty_logits(size: int, fault: float) -> None:
    sampler = NativeSampler(size)
    for at in (0, size // 2, size - 1):
        logits = np.zeros(size, np.float32)
        logits[at] = fault
        for temperature in (0.0, 1.0):
            with pytest.raises(NonFiniteLogitsError, match="position 17"):
                sampler.sample(logits, Draw(DrawParams(temperature), 1, 17))


def test_faulty_replacements_and_empty_masks() -> None:
    logits = np.zeros(40, np.float32)
    sampler = NativeSampler(40)
    for fault in (math.nan, INF):
        replacements = Replacements(np.array([39], np.int32), np.array([fault], np.float32))
        with pytest.raises(NonFiniteLogitsError):
            sampler.sample(logits, Draw(DrawParams(), 1, 2, replacements=replacements))
    nothing = np.array([0, 0xFFFFFF00], np.uint32)  # the bits behind the vocabulary do not count
    with pytest.raises(NothingAllowedError, match="position 2"):
        sampler.sample(logits, Draw(DrawParams(), 1, 2, mask=nothing))


def test_one_bad_row_does_not_fail_the_others() -> None:
    logits = np.zeros((3, 40), np.float32)
    logits[1, 5] = math.nan
    draw = Draw(DrawParams(0.0), 1, 2)
    banned = Draw(DrawParams(0.0), 1, 2, mask=np.zeros(2, np.uint32))
    assert NativeSampler(40).sample_rows(logits, [2, 1, 0], [draw, draw, banned]) == [0, NOT_FINITE, NOTHING_ALLOWED]


def bad_draws() -> Iterator[Draw]:
    params = DrawParams()
    yield Draw(params, 1, 2, replacements=Replacements(np.array([40], np.int32), np.array([1], np.float32)))
    yield Draw(params, 1, 2, replacements=Replacements(np.array([-1], np.int32), np.array([1], np.float32)))
    yield Draw(params, 1, 2, replacements=Replacements(np.array([1, 2], np.int32), np.array([1], np.float32)))
    yield Draw(params, 1, 2, mask=np.zeros(1, np.uint32))
    yield Draw(params, 1, MAX_POSITION + 1)


@pytest.mark.parametrize("draw", list(bad_draws()))
def test_draws_out_of_range(draw: Draw) -> None:
    with pytest.raises(ValueError, match=r"replaced|mask|position"):
        NativeSampler(40).sample(np.zeros(40, np.float32), draw)


def test_rows_that_are_none() -> None:
    sampler, draw = NativeSampler(40), Draw(DrawParams(), 1, 2)
    for logits in (np.zeros(39, np.float32), np.zeros(40, np.float64), np.zeros((1, 1, 40), np.float32)):
        with pytest.raises(ValueError, match="float32 logits"):
            sampler.sample(logits, draw)
    with pytest.raises(ValueError, match="not there"):
        sampler.sample_rows(np.zeros((2, 40), np.float32), [2], [draw])
    with pytest.raises(ValueError, match="one draw"):
        sampler.sample_rows(np.zeros((2, 40), np.float32), [0, 1], [draw])
    with pytest.raises(ValueError, match="logits"):
        NativeSampler(0)


def test_rows_dealt_out_to_threads() -> None:
    random = np.random.default_rng(7)
    logits = random.normal(0, 1, (9, 3000)).astype(np.float32)
    draws = [Draw(DrawParams(0.8, top_p=0.9), 3, position) for position in range(9)]
    rows = [8, 7, 6, 5, 4, 3, 2, 1, 0]
    expected = NativeSampler(3000).sample_rows(logits, rows, draws)
    sampler = NativeSampler(3000, decoder=make_decoder(3), num_threads=3)
    for _ in range(50):
        assert sampler.sample_rows(logits, rows, draws) == expected
