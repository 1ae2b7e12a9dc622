"""Extreme parameters on extreme rows: compiled code and array code agree, laws stay laws, and bans hold."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paceline.acceptance import MatchRule, Verification
from paceline.acceptance.canonical import CanonicalSampler, create_sampler
from paceline.acceptance.reference import NothingAllowedError
from paceline.acceptance.sampling import NativeSampler
from paceline.sampling_params import SamplingParams

SIZE, LEFT = 50, 31
LARGEST = float(np.finfo(np.float32).max)


def peaked(height: float) -> NDArray[np.float32]:
    row = np.zeros(SIZE, np.float32)
    row[17] = height
    return row


ROWS: dict[str, NDArray[np.float32]] = {
    "flat": np.full(SIZE, -3.25, np.float32),
    "one peak": peaked(60),
    "the highest peak": peaked(LARGEST),
    "one hole": peaked(-LARGEST),
    "both ends": np.where(np.arange(SIZE) % 2 == 0, LARGEST, -LARGEST).astype(np.float32),
    "too small to be normal": np.arange(SIZE, dtype=np.float32) * np.float32(1e-45),
    "neighbours": np.nextafter(np.ones(SIZE, np.float32), np.float32(2), dtype=np.float32)
    - np.eye(SIZE, dtype="f4")[3],
}
LIMITS: list[Mapping[str, Any]] = [
    {"repetition_penalty": sys.float_info.max},
    {"repetition_penalty": 5e-324},
    {"presence_penalty": 2.0, "frequency_penalty": 2.0},
    {"presence_penalty": -2.0, "frequency_penalty": -2.0},
    {"logit_bias": dict.fromkeys(range(SIZE), 100)},
    {"logit_bias": {token: 100 if token % 3 else -100 for token in range(SIZE)}},
    {"top_k": 1},
    {"top_k": 10**12},
    {"min_p": 1.0},
    {"min_p": 5e-324},
    {"top_p": 5e-324},
    {"top_p": 1 - 2.0**-53},
    {"top_k": 2, "top_p": 0.5, "min_p": 1.0},
    {"logits_processors": [lambda _, row: np.where(np.arange(SIZE) % 5 == 0, row, -np.inf)]},
]
BUT_ONE: list[Mapping[str, Any]] = [
    {"allowed_token_ids": [LEFT]},
    {"banned_ids": [token for token in range(SIZE) if token != LEFT]},
    {"bad_words": [str(token) for token in range(SIZE) if token != LEFT], "encode": lambda word: [int(word)]},
    {"min_tokens": 9, "stop_ids": [token for token in range(SIZE) if token != LEFT]},
    {"logits_processors": [lambda _, row: np.where(np.arange(SIZE) == LEFT, row, -np.inf)]},
    {"allowed_token_ids": [LEFT], "logit_bias": {LEFT: -100}, "repetition_penalty": 1e300},
    {"allowed_token_ids": [4, LEFT], "banned_ids": [4]},
]


def make(*, is_native: bool, **fields: Any) -> CanonicalSampler:
    extra = {name: fields.pop(name) for name in ("banned_ids", "stop_ids", "encode") if name in fields}
    if "encode" in extra:
        encode = extra["encode"]
        extra["encode"] = lambda word: encode(word) if word.strip() == word else ()
    sampler = create_sampler(
        SamplingParams(**fields),
        seed=3,
        prompt=(0, 17, LEFT),
        vocab_size=SIZE,
        native=NativeSampler(SIZE) if is_native else None,
        **extra,
    )
    sampler.extend((17, 17, 3))
    return sampler


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("temperature", [0, 1e-6, 1.0, 2.0])
@pytest.mark.parametrize("fields", LIMITS, ids=" ".join)
def test_limits(fields: Mapping[str, Any], temperature: float, row: NDArray[np.float32]) -> None:
    samplers = [make(is_native=is_native, temperature=temperature, **fields) for is_native in (False, True)]
    for position in range(6, 12):
        for drafted in ((), (3, 17)):
            tokens = {sampler.sample(row, position, drafted) for sampler in samplers}
            laws = [sampler.law(row, position, drafted) for sampler in samplers]
            assert laws[0].tobytes() == laws[1].tobytes()
            assert abs(laws[0].sum() - 1) < 1e-12
            assert laws[0].min() >= 0
            assert len(tokens) == 1
            assert laws[0][tokens.pop()] > 0


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("fields", BUT_ONE, ids=" ".join)
def test_everything_banned_but_one(fields: Mapping[str, Any], row: NDArray[np.float32]) -> None:
    for temperature in (0, 1e-6, 2.0):
        for is_native in (False, True):
            sampler = make(is_native=is_native, temperature=temperature, **fields)
            assert {sampler.sample(row, position) for position in range(6, 12)} == {LEFT}
            assert sampler.law(row, 6)[LEFT] == 1


@pytest.mark.parametrize("is_native", [False, True])
@pytest.mark.parametrize("temperature", [0, 1e-6, 2.0])
def test_everything_banned_ends_the_walk_with_an_error(temperature: float, is_native: bool) -> None:
    """In the middle of a draft: what stands before it stands."""

    def ban_all_behind_two(tokens: Sequence[int], row: NDArray[np.float32]) -> NDArray[np.float32]:
        only = np.arange(SIZE) == 8 + len(tokens)
        return np.where(only & (len(tokens) < 5), row, np.float32(-np.inf))

    sampler = make(is_native=is_native, temperature=temperature, logits_processors=[ban_all_behind_two])
    logits = np.zeros((5, SIZE), np.float32)
    outcome = MatchRule().accept(Verification(0, logits, (11, 12, 13, 14), (-1, 0, 1, 2), 6, sampler))
    assert outcome.tokens == (11, 12)
    assert outcome.error == "no token id is allowed at position 8"
    with pytest.raises(NothingAllowedError):
        sampler.sample(logits[0], 8, (11, 12))
