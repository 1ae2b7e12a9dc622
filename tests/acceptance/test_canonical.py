"""The canonical sampler and what makes it: extremes, refusals, and compiled code against array code."""

from typing import Any

import numpy as np
import pytest

from paceline.acceptance import reference
from paceline.acceptance.base import NonFiniteLogitsError
from paceline.acceptance.canonical import CanonicalSampler, create_sampler
from paceline.acceptance.processors import FixedMask
from paceline.acceptance.processors.bits import only
from paceline.acceptance.reference import NothingAllowedError
from paceline.acceptance.sampling import NativeSampler
from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams

SIZE = 70
ROW = np.random.default_rng(1).normal(0, 3, SIZE + 10).astype(np.float32)
ROW[SIZE:] = 99
PROMPT = (1, 2, 3)


def make(native: bool = True, seed: int = 7, **fields: Any) -> CanonicalSampler:
    extra = {name: fields.pop(name) for name in ("banned_ids", "stop_ids", "encode", "grammar") if name in fields}
    return create_sampler(
        SamplingParams(**fields),
        seed=seed,
        prompt=PROMPT,
        vocab_size=SIZE,
        native=NativeSampler(SIZE) if native else None,
        **extra,
    )


BEST = int(ROW[:SIZE].argmax())
EXTREMES: list[dict[str, Any]] = [
    {"temperature": 0},
    {"temperature": 1e-6},
    {"temperature": 2.0, "top_k": 1},
    {"temperature": 2.0, "min_p": 1.0},
    {"temperature": 2.0, "top_p": 1e-300},
]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("fields", EXTREMES)
def test_extremes_take_the_most_likely_token(fields: dict[str, Any], native: bool) -> None:
    sampler = make(native, **fields)
    law = sampler.law(ROW, 3)
    assert law.shape == (SIZE,)
    assert law[BEST] == 1
    assert {sampler.sample(ROW, position) for position in range(3, 40)} == {BEST}


FIELDS: list[dict[str, Any]] = [
    {},
    {"top_p": 0.9},
    {"top_k": 5, "min_p": 0.1},
    {"repetition_penalty": 1.8, "presence_penalty": 2.0, "frequency_penalty": -2.0},
    {"logit_bias": {0: 100, 1: -100}},
    {"allowed_token_ids": range(5, 50), "top_p": 0.8},
    {"banned_ids": range(60, 75), "min_tokens": 4, "stop_ids": [0, 9, 30]},
    {"bad_words": ["a"], "encode": lambda _: [4, 5]},
    {"logits_processors": [lambda tokens, row: np.where(np.arange(SIZE) % 7 == len(tokens) % 7, row, -np.inf)]},
]


@pytest.mark.parametrize("temperature", [0, 0.7, 1.5])
@pytest.mark.parametrize("fields", FIELDS)
def test_compiled_code_draws_what_array_code_draws(fields: dict[str, Any], temperature: float) -> None:
    compiled, array = make(temperature=temperature, **fields), make(False, temperature=temperature, **fields)
    before = ROW.tobytes()
    random = np.random.default_rng(0)
    for position in range(3, 40):
        drafted = random.integers(0, SIZE, 3).tolist()
        for path in (drafted[:i] for i in range(4)):
            token = array.sample(ROW, position + len(path), path)
            assert compiled.sample(ROW, position + len(path), path) == token
            law = array.law(ROW, position + len(path), path)
            assert law.tobytes() == compiled.law(ROW, position + len(path), path).tobytes()
            assert law[token] > 0
        token = array.sample(ROW, position)
        compiled.extend([token])
        array.extend([token])
    assert ROW.tobytes() == before


def one_token_only(row: Any) -> Any:
    return np.where(np.arange(SIZE) == 5, row, -np.inf).astype(row.dtype)


@pytest.mark.parametrize(
    ("owner", "function", "other"),
    [
        (CanonicalSampler, "_edited", lambda _, row, *__: one_token_only(row[:SIZE])),
        (CanonicalSampler, "_allowed", lambda *_: only([5], SIZE)),
        (CanonicalSampler, "_masked", lambda _, row, *__: one_token_only(row)),
        (reference, "truncated", lambda row, *_: one_token_only(row.astype(np.float64))),
    ],
)
def test_the_law_is_made_of_what_draws(owner: Any, function: str, other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another function in its place, the law and the draw both go its way."""
    sampler = make(False, temperature=1.0, presence_penalty=1.0, banned_ids=[3])
    assert sampler.law(ROW, 9, [1])[5] < 0.5
    assert {sampler.sample(ROW, position, [1]) for position in range(9, 30)} != {5}
    monkeypatch.setattr(owner, function, other)
    assert sampler.law(ROW, 9, [1])[5] == 1
    assert {sampler.sample(ROW, position, [1]) for position in range(9, 30)} == {5}


def test_seeds_and_positions_key_the_noise() -> None:
    draws = [[make(seed=seed, temperature=1.0).sample(ROW, p) for p in range(3, 60)] for seed in (0, 0, 2**64 - 1)]
    assert draws[0] == draws[1] != draws[2]
    assert len(set(draws[0])) > 5
    assert make(seed=9).seed == 9


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("fields", [{}, {"temperature": 1.0}, {"temperature": 1.0, "repetition_penalty": 2.0}])
def test_rows_that_are_not_finite_are_refused(fields: dict[str, Any], bad: float, native: bool) -> None:
    sampler, row = make(native, banned_ids=[2], **fields), ROW.copy()
    row[2] = bad
    for ask in (sampler.sample, sampler.law):
        with pytest.raises(NonFiniteLogitsError, match="position 3 are not finite"):
            ask(row, 3)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_everything_banned_is_an_error(temperature: float, native: bool) -> None:
    words = {"bad_words": ["a"], "encode": lambda _: [8, 9], "allowed_token_ids": [8, 9]}
    sampler = make(native, temperature=temperature, **words)
    assert sampler.sample(ROW, 3) in (8, 9)
    one_left = make(native, temperature=temperature, **words)
    assert one_left.sample(ROW, 4, [8]) == 8
    none_left = make(native, temperature=temperature, allowed_token_ids=[9], grammar=Late())
    with pytest.raises(NothingAllowedError, match="at position 4"):
        none_left.sample(ROW, 4, [9])
    with pytest.raises(NothingAllowedError, match="at position 4"):
        none_left.law(ROW, 4, [9])


class Late(FixedMask):
    """A grammar that goes on with token 1 alone once anything stands."""

    def __init__(self) -> None:
        super().__init__(only([1], SIZE))

    def is_active(self, drafted: Any) -> bool:
        return len(drafted) > 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"allowed_token_ids": [1], "banned_ids": [1]}, r"^allowed_token_ids is \(1,\): that leaves none of 70 tokens"),
        ({"min_tokens": 2, "stop_ids": range(SIZE)}, r"^min_tokens is 2: that leaves none"),
        (
            {"allowed_token_ids": [5], "bad_words": ["a"], "encode": lambda _: [5]},
            r"^allowed.* and bad_words is \('a',",
        ),
        ({"allowed_token_ids": [5], "grammar": FixedMask(only([6], SIZE))}, r"and a grammar is given: that leaves"),
        ({"allowed_token_ids": [70]}, r"^allowed_token_ids holds the token id 70; expected 0 to 69"),
        ({"logit_bias": {71: 1}}, r"^logit_bias holds the token id 71; expected 0 to 69"),
        ({"bad_words": ["a"]}, r"^bad_words is \('a',\); this engine has no tokenizer"),
    ],
)
def test_requests_that_cannot_run_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(**fields)
