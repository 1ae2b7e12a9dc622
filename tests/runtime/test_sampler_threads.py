"""The compiled sampler on several threads: the same tokens, and one caller at a time."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from samplers import make_decoder

from paceline.acceptance.reference import DrawParams
from paceline.acceptance.sampling import Draw, NativeSampler

PATIENCE = 300  # seconds after which a test takes what it waits for to hang
ROWS = np.random.default_rng(5).normal(0, 1, (13, 3000)).astype(np.float32)
DRAWS = [
    Draw(DrawParams(0.8, **fields), seed, position)
    for seed, fields in enumerate([{}, {"top_p": 0.6}, {"top_k": 40, "top_p": 0.9}, {"min_p": 0.05}])
    for position in range(13)
]


def sampler_of(num_threads: int) -> NativeSampler:
    return NativeSampler(ROWS.shape[1], decoder=make_decoder(num_threads), num_threads=num_threads)


def draw_rows(sampler: NativeSampler) -> list[int]:
    return sampler.sample_rows(ROWS, [draw.position for draw in DRAWS], DRAWS)


@pytest.mark.parametrize("num_threads", [2, 5])
def test_rows_are_sampled_on_several_threads(num_threads: int) -> None:
    expected, sampler = draw_rows(sampler_of(1)), sampler_of(num_threads)
    assert all(draw_rows(sampler) == expected for _ in range(20))


def test_two_samplers_at_once() -> None:
    """Each with threads of its own, in two Python threads."""
    expected = draw_rows(sampler_of(1))

    def work(sampler: NativeSampler) -> None:
        for _ in range(20):
            assert draw_rows(sampler) == expected

    with ThreadPoolExecutor(2) as executor:
        for future in [executor.submit(work, sampler_of(3)) for _ in range(2)]:
            future.result(PATIENCE)


def test_a_second_caller_of_a_sampler_is_refused() -> None:
    sampler, expected = sampler_of(2), draw_rows(sampler_of(1))
    refusals: list[str] = []

    def work() -> None:
        for _ in range(100):
            try:
                assert draw_rows(sampler) == expected
            except RuntimeError as error:
                refusals.append(str(error))

    with ThreadPoolExecutor(4) as executor:
        for future in [executor.submit(work) for _ in range(4)]:
            future.result(PATIENCE)
    assert refusals
    assert all("in use by another thread" in refusal for refusal in refusals)
    assert draw_rows(sampler) == expected
