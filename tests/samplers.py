"""The product's sampler at temperature 0, for tests that need any."""

from collections.abc import Iterable

from paceline.acceptance.base import Sampler
from paceline.acceptance.canonical import create_sampler
from paceline.sampling_params import SamplingParams


def greedy_sampler(vocab_size: int, banned: Iterable[int] = ()) -> Sampler:
    return create_sampler(
        SamplingParams(temperature=0), seed=0, prompt=(0,), vocab_size=vocab_size, banned_ids=list(banned)
    )
