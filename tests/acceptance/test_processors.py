"""Every processor against its definition over the whole text, told of it piece by piece, and along drafts."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from paceline.acceptance.base import NonFiniteLogitsError
from paceline.acceptance.canonical import create_sampler
from paceline.acceptance.processors import (
    BadWords,
    Edit,
    FixedMask,
    LogitBias,
    LogitsProcessor,
    LogitsProcessorError,
    MinTokens,
    OccurrencePenalties,
    RepetitionPenalty,
    UserProcessor,
    bad_word_sequences,
)
from paceline.acceptance.processors.bits import all_but, is_set, only, packed, unpacked, without
from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams

SIZE = 4
PROMPT = (2, 2, 0)
ROW = np.array([1.5, -0.75, 0.0, 3.0], np.float32)
Definition = Callable[[Sequence[int], NDArray[np.float32]], list[float]]


def user(tokens: Sequence[int], row: NDArray[np.float32]) -> NDArray[np.float32]:
    row[sum(tokens) % SIZE] += len(tokens)
    return row


def repetition(text: Sequence[int], row: NDArray[np.float32]) -> list[float]:
    seen = {*PROMPT, *text}
    return [(x / 1.5 if x > 0 else x * 1.5) if i in seen else x for i, x in enumerate(row.tolist())]


def occurrence(text: Sequence[int], row: NDArray[np.float32]) -> list[float]:
    return [x - (0.5 + 0.25 * text.count(i) if i in text else 0) for i, x in enumerate(row.tolist())]


def bad_words(text: Sequence[int], row: NDArray[np.float32]) -> list[float]:
    words = [(3,), (0, 1), (1, 1, 2), (0, 2, 0)]
    banned = [i for i in range(SIZE) if any((*text, i)[-len(word) :] == word for word in words)]
    return [-np.inf if i in banned else x for i, x in enumerate(row.tolist())]


def min_tokens(text: Sequence[int], row: NDArray[np.float32]) -> list[float]:
    return [-np.inf if i in (0, 3) and len(text) < 2 else x for i, x in enumerate(row.tolist())]


CASES: dict[str, tuple[Callable[[], LogitsProcessor], Definition]] = {
    "user": (lambda: UserProcessor(user), lambda text, row: user(text, row.copy()).tolist()),
    "repetition": (lambda: RepetitionPenalty(1.5, PROMPT), repetition),
    "occurrence": (lambda: OccurrencePenalties(0.5, 0.25), occurrence),
    "bias": (
        lambda: LogitBias([(1, 2.0), (3, -4.0)]),
        lambda _, row: [float(row[0]), float(row[1]) + 2, float(row[2]), float(row[3]) - 4],
    ),
    "bad words": (lambda: BadWords([(3,), (0, 1), (1, 1, 2), (0, 2, 0), (3,)], SIZE), bad_words),
    "fixed": (lambda: FixedMask(only([1, 2], SIZE)), lambda _, row: [-np.inf, float(row[1]), float(row[2]), -np.inf]),
    "min tokens": (lambda: MinTokens(2, [0, 3], SIZE), min_tokens),
}


def processed(processor: LogitsProcessor, drafted: Sequence[int]) -> NDArray[np.float32]:
    row = ROW.copy()
    if not processor.is_active(drafted):
        return row
    if isinstance(processor, Edit):
        processor.apply(row, drafted)
        return row
    allowed = processor.allowed(drafted)
    assert [processor.allows(token, drafted) for token in range(SIZE)] == unpacked(allowed, SIZE).tolist()
    return np.where(unpacked(allowed, SIZE), row, np.float32(-np.inf))


@pytest.mark.parametrize("name", CASES)
def test_every_history_and_every_draft(name: str) -> None:
    """All texts of up to four tokens, cut at every place into what was committed, in one piece or token by token, and
    what is drafted."""
    create, definition = CASES[name]
    for length in range(5):
        for text in product(range(SIZE), repeat=length):
            expected = np.array(definition(text, ROW), np.float32).tobytes()
            for cut in range(length + 1):
                whole, single = create(), create()
                whole.extend(text[:cut])
                for token in text[:cut]:
                    single.extend([token])
                assert processed(whole, text[cut:]).tobytes() == expected
                assert processed(single, text[cut:]).tobytes() == expected
                assert processed(single, text[cut:]).tobytes() == expected, "asking changed it"


def test_counts_grow_past_any_reserve() -> None:
    tokens = [(7 * i) % 300 for i in range(900)]
    row = np.zeros(301, np.float32)
    penalties = OccurrencePenalties(1, 0.5)
    for start in range(0, 900, 7):
        penalties.extend(tokens[start : start + 7])
    penalties.apply(row, [5, 5, 300])
    counts = [[*tokens, 5, 5, 300].count(i) for i in range(301)]
    expected = [-(1 + 0.5 * count) if count else 0 for count in counts]
    assert row.tolist() == expected


def test_inactive_processors_say_so() -> None:
    assert not RepetitionPenalty(2, ()).is_active(())
    assert RepetitionPenalty(2, ()).is_active((1,))
    assert not OccurrencePenalties(1, 1).is_active(())
    assert not BadWords([(0, 1)], SIZE).is_active((1,))
    assert BadWords([(0, 1)], SIZE).is_active((0,))
    assert not MinTokens(2, [0], SIZE).is_active((1, 1))


@pytest.mark.parametrize("penalty", [5e-324, 1e-30, 1e30, 1.7e308])
def test_no_penalty_bans_or_breaks_a_token(penalty: float) -> None:
    row = np.array([3e38, -3e38, 0, 1e-45, -np.inf], np.float32)
    RepetitionPenalty(penalty, range(5)).apply(row, ())
    assert np.isfinite(row[:4]).all()
    assert row[4] == -np.inf


def test_both_spellings_of_a_bad_word_are_found() -> None:
    codes = {"a": [1], " a": [2], "b c": [3, 4], " b c": [5, 4], " ": [6], "x": [], " x": [7]}
    assert bad_word_sequences(["a", " a", "b c", " "], codes.__getitem__) == [(1,), (2,), (3, 4), (5, 4), (6,)]
    assert bad_word_sequences(["same", "same"], lambda _: [9]) == [(9,)]
    with pytest.raises(UsageError, match="bad_words holds 'x', which this model has no tokens for"):
        bad_word_sequences(["x"], codes.__getitem__)


@pytest.mark.parametrize("given", [[1.0, 2.0], [[1.0] * 4], [1, 2, 3, 4]])
def test_user_processors_return_rows(given: list[float]) -> None:
    with pytest.raises(LogitsProcessorError, match=r"returned .* expected float32 of shape"):
        UserProcessor(lambda *_: np.array(given)).apply(ROW.copy(), ())


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_user_processors_return_logits(bad: float) -> None:
    with pytest.raises(NonFiniteLogitsError, match="NaN or plus infinity"):
        UserProcessor(lambda *_: np.array([0, bad, 0, 0], np.float64)).apply(ROW.copy(), ())


@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 100])
def test_sets_of_tokens(size: int) -> None:
    is_in = np.random.default_rng(size).integers(0, 2, size).astype(np.bool_)
    bits = packed(is_in)
    assert len(bits) == -(-size // 32)
    assert unpacked(bits, size).tolist() == is_in.tolist() == [is_set(bits, i) for i in range(size)]
    assert unpacked(bits, len(bits) * 32)[size:].sum() == 0
    inside = np.flatnonzero(is_in)
    assert (only(inside.tolist(), size) == bits).all()
    assert (all_but(np.flatnonzero(~is_in).tolist(), size) == bits).all()
    assert (without(bits, [size - 1]) == only(inside[inside != size - 1].tolist(), size)).all()


ORDERED = [
    # a user's function sees the row as it comes, and cannot bring back what is banned
    (
        {"logits_processors": [lambda _, row: np.where(row == 3, row, 100).astype(np.float32)], "logit_bias": {3: 100}},
        3,
    ),
    ({"logits_processors": [lambda _, row: row * 0], "allowed_token_ids": [2]}, 2),
    # scaled, then shifted: -1 * 2 + 3 is 1, and (-1 + 3) / 2 would be 1 as well; with the prompt's 2 at 0 it is 3
    ({"repetition_penalty": 2.0, "logit_bias": {0: 4.0}}, 0),
    ({"repetition_penalty": 2.0, "logit_bias": {0: 2.0}}, 3),
    # the most a bias can do does not lift a ban
    ({"logit_bias": {1: 100.0}, "bad_words": ["x"]}, 3),
    ({"logit_bias": {1: 100.0}, "allowed_token_ids": [0, 2]}, 0),
    ({"logit_bias": {1: 100.0}, "min_tokens": 1}, 3),
]


@pytest.mark.parametrize(("fields", "token"), ORDERED)
def test_order(fields: dict[str, object], token: int) -> None:
    sampler = create_sampler(
        SamplingParams(temperature=0, **fields),  # type: ignore[arg-type]
        seed=0,
        prompt=PROMPT,
        vocab_size=SIZE,
        stop_ids=[1],
        encode=lambda _: [1],
    )
    assert sampler.sample(ROW, 3) == token


ALL = SamplingParams(
    temperature=0.8,
    top_p=0.95,
    top_k=4,
    min_p=0.01,
    repetition_penalty=1.3,
    presence_penalty=0.4,
    frequency_penalty=-0.7,
    logit_bias={0: -1, 4: 0.5},
    bad_words=["x", "y"],
    allowed_token_ids=[0, 1, 2, 4],
    min_tokens=2,
    logits_processors=[lambda tokens, row: row + np.float32(len(tokens)) * np.arange(5, dtype=np.float32) / 8],
)


def test_a_law_behind_a_draft_is_the_law_behind_a_text() -> None:
    """With every processor at once, on each path of a tree: all texts of up to four tokens, at every cut."""
    row = np.array([0.5, -0.75, 0.0, 3.0, 1.0], np.float32)

    def sampler(committed: Sequence[int]):  # type: ignore[no-untyped-def]
        created = create_sampler(
            ALL,
            seed=5,
            prompt=PROMPT,
            vocab_size=5,
            banned_ids=[3],
            stop_ids=[4],
            encode=lambda word: [1, 0] if "x" in word else [0, 0, 2],
        )
        created.extend(committed)
        return created

    laws = set()
    for length in range(5):
        for text in product(range(5), repeat=length):
            position = len(PROMPT) + length
            plain = sampler(text)
            law, token = plain.law(row, position), plain.sample(row, position)
            assert law[token] > 0
            assert law[3] == 0
            assert abs(law.sum() - 1) < 1e-12
            laws.add(law.tobytes())
            for cut in range(length):
                drafting = sampler(text[:cut])
                assert drafting.law(row, position, text[cut:]).tobytes() == law.tobytes()
                assert drafting.sample(row, position, text[cut:]) == token
    assert len(laws) > 30
