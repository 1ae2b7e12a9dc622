"""Many draws of the product's samplers from a real model's logits, against the law that enumeration takes for theirs.

All keys are fixed, so a verdict never changes. For keys picked at random, one of the tests of this file would raise a
false alarm once in a million times: each of them has its share of that.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chi_square import chi_square_tail, goodness_of_fit
from numpy.typing import NDArray

from paceline.acceptance.canonical import create_sampler
from paceline.acceptance.reference import DrawParams, law
from paceline.acceptance.sampling import Draw, NativeSampler
from paceline.models import open_model
from paceline.runtime import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.sampling_params import SamplingParams

NUM_DRAWS = 5_000
PROMPTS = ("The capital of", "Once upon a time, there was a", "def main():\n    ")
SETTINGS: list[Mapping[str, Any]] = [
    {},
    {"temperature": 0.7, "top_p": 0.9},
    {"temperature": 1.5, "top_k": 50, "min_p": 0.02},
    {"temperature": 1.5, "top_p": 0.95},
]
PROCESSED: list[Mapping[str, Any]] = [
    {"temperature": 1.2, "repetition_penalty": 1.3, "frequency_penalty": 0.7, "logit_bias": {28: 2.0}},
    {"temperature": 1.0, "allowed_token_ids": range(200, 3000), "top_p": 0.95},
]
NUM_PROCESSED_DRAWS = 3_000
FALSE_ALARM = 1e-6 / (len(PROMPTS) * (len(SETTINGS) + len(PROCESSED)))

Row = NDArray[np.float32]


@pytest.fixture(scope="module")
def rows(smollm2_path: Path) -> list[Row]:
    """The logits behind each prompt."""
    with open_model(smollm2_path) as model:
        runtime = NativeRuntime.load(model, NativeOptions(max_length=64, num_pages=1))
        texts = [model.tokenizer().encode(prompt) for prompt in PROMPTS]
        segments = [Segment(0, 0, (0,), tuple(text), logits_rows=(len(text) - 1,)) for text in texts]
        return [runtime.forward([segment]).logits[0].copy() for segment in segments]


def draws_of(row: Row, params: DrawParams, first: int) -> NDArray[np.int64]:
    sampler = NativeSampler(len(row))
    draws = [Draw(params, 1, first + i) for i in range(NUM_DRAWS)]
    return np.array(sampler.sample_rows(row, [0] * NUM_DRAWS, draws))


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_compiled_sampler_draws_from_the_law(rows: list[Row], setting: Mapping[str, Any]) -> None:
    params = DrawParams(**setting)
    for i, row in enumerate(rows):
        assert goodness_of_fit(draws_of(row, params, i * NUM_DRAWS), law(row, params)) > FALSE_ALARM


@pytest.mark.parametrize("fields", PROCESSED)
def test_samplers_with_processors_draw_from_their_law(rows: list[Row], fields: Mapping[str, Any]) -> None:
    native = NativeSampler(len(rows[0]))
    for row in rows:
        sampler = create_sampler(
            SamplingParams(**fields), seed=2, prompt=(28, 30, 253), vocab_size=len(row), native=native
        )
        sampler.extend((260, 260, 28))
        tokens = [sampler.sample(row, position, (281,)) for position in range(NUM_PROCESSED_DRAWS)]
        assert goodness_of_fit(np.array(tokens), sampler.law(row, 0, (281,))) > FALSE_ALARM


@pytest.mark.parametrize("other", [{"temperature": 0.9}, {"top_p": 0.95}, {"min_p": 0.01}])
def test_the_test_finds_another_law(rows: list[Row], other: Mapping[str, Any]) -> None:
    tokens = draws_of(rows[0], DrawParams(**other), 0)
    assert goodness_of_fit(tokens, law(rows[0], DrawParams())) < FALSE_ALARM


def test_the_tail_of_chi_square() -> None:
    """In closed form: of one degree of freedom, and of even numbers of them, which is a sum of a Poisson law."""
    for x in (0.01, 0.5, 3.0, 20.0, 80.0):
        assert math.isclose(chi_square_tail(x, 1), math.erfc(math.sqrt(x / 2)), rel_tol=1e-12)
        for half in (1, 5, 30):
            poisson = math.fsum(math.exp(k * math.log(x / 2) - x / 2 - math.lgamma(k + 1)) for k in range(half))
            assert math.isclose(chi_square_tail(x, 2 * half), poisson, rel_tol=1e-10)


def test_false_alarms_are_as_rare_as_said() -> None:
    """Of 4,000 samples of a law, so many should be that far away: within five standard deviations."""
    random = np.random.default_rng(3)
    p = random.dirichlet(np.full(40, 0.3))
    tails = [goodness_of_fit(random.choice(40, 1000, p=p), p) for _ in range(4_000)]
    for level in (0.1, 0.01):
        count = sum(tail < level for tail in tails)
        assert abs(count - 4_000 * level) < 5 * math.sqrt(4_000 * level)
