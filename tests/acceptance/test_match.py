"""The rule `match` by enumeration, and the greedy sampler."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from samplers import greedy_sampler

from paceline.acceptance import (
    Law,
    MatchRule,
    NonFiniteLogitsError,
    Verification,
    check_parents,
    create_acceptance_rule,
)
from paceline.errors import UsageError

RULE = MatchRule()
LAWS = [
    [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)],
    [Fraction(1, 1), Fraction(0), Fraction(0)],
    [Fraction(1, 10), Fraction(0), Fraction(9, 10)],
]


class Prescribed:
    """A sampler that draws what a list says, in the order of positions from `begin`."""

    def __init__(self, draws: Sequence[int], begin: int) -> None:
        self.draws = draws
        self.begin = begin

    seed = 0

    def sample(self, logits: NDArray[np.float32], position: int, drafted: Sequence[int] = ()) -> int:  # noqa: ARG002
        assert list(drafted) == list(self.draws[: position - self.begin])
        return self.draws[position - self.begin]

    def law(self, logits: NDArray[np.float32], position: int, drafted: Sequence[int] = ()) -> Law:
        raise NotImplementedError

    def extend(self, tokens: Sequence[int]) -> None:
        raise NotImplementedError


def verify(
    draft: tuple[int, ...], parents: tuple[int, ...], draws: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    logits = np.zeros((len(draft) + 1, 3), np.float32)
    outcome = RULE.accept(Verification(0, logits, draft, parents, 7, Prescribed(draws, 7)))
    assert len(outcome.path) == len(outcome.tokens)
    assert outcome.num_accepted == len(outcome.path) - 1
    return outcome.path, outcome.tokens


def chain(draft: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(-1, len(draft) - 1))


@pytest.mark.parametrize("p", LAWS)
def test_law_of_one_token_is_p(p: list[Fraction]) -> None:
    """Σ_x q(x) · (accept(x) · [x = y] + (1 − accept(x)) · residual_x(y)) = p(y), for every q; here for each x alone."""
    law = np.array(p, np.float64)
    q = np.full(3, 1 / 3)
    for x in range(3):
        accepted = RULE.accept_probability(law, q, x)
        emitted = np.zeros(3)
        emitted[x] = accepted
        if accepted < 1:
            emitted += (1 - accepted) * RULE.residual(law, q, x)
        assert np.abs(emitted - law).max() < 1e-12


@pytest.mark.parametrize("p", LAWS)
def test_drawing_path_has_that_law(p: list[Fraction]) -> None:
    """Enumerate the sampler's draws with their exact probabilities: what `accept` does is what the law says."""
    law = np.array(p, np.float64)
    for x in range(3):
        accepted, rest = Fraction(0), [Fraction(0)] * 3
        for draw, probability in enumerate(p):
            path, tokens = verify((x,), (-1,), (draw, 0))
            if len(path) == 2:
                accepted += probability
            else:
                rest[tokens[0]] += probability
        assert abs(float(accepted) - RULE.accept_probability(law, law, x)) < 1e-12
        if accepted < 1:
            residual = np.array([float(value / (1 - accepted)) for value in rest])
            assert np.abs(residual - RULE.residual(law, law, x)).max() < 1e-12


def test_certain_token_has_no_residual() -> None:
    with pytest.raises(ValueError, match="never rejected"):
        RULE.residual(np.array([1.0, 0.0]), np.array([0.5, 0.5]), 0)


def test_every_chain_is_kept_while_it_agrees() -> None:
    for length in range(4):
        for draft in product(range(3), repeat=length):
            for draws in product(range(3), repeat=length + 1):
                agreed = next((i for i in range(length) if draft[i] != draws[i]), length)
                expected = tuple(range(agreed + 1)), draws[: agreed + 1]
                assert verify(draft, chain(draft), draws) == expected


def test_every_small_tree_is_descended_by_the_draws() -> None:
    trees = [parents for n in range(1, 4) for parents in product(*(range(-1, i) for i in range(n)))]
    for parents in trees:
        for draft in product(range(3), repeat=len(parents)):
            for draws in product(range(3), repeat=len(parents) + 1):
                path, tokens = verify(draft, parents, draws)
                assert tokens == draws[: len(tokens)]
                for depth, row in enumerate(path[1:]):
                    assert parents[row - 1] == path[depth] - 1
                    assert draft[row - 1] == tokens[depth]
                last_children = [i for i, parent in enumerate(parents) if parent == path[-1] - 1]
                assert all(draft[i] != tokens[-1] for i in last_children)


def test_first_of_equal_siblings_is_followed() -> None:
    assert verify((1, 1, 2, 2), (-1, -1, 0, 1), (1, 2, 0)) == ((0, 1, 3), (1, 2, 0))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 1, 2, 3])
def test_row_that_is_not_finite_ends_the_walk(bad: float, row: int) -> None:
    logits = np.zeros((4, 3), np.float32)
    logits[range(3), [2, 1, 0]] = 1
    logits[row, 1] = bad
    outcome = RULE.accept(Verification(4, logits, (2, 1, 0), (-1, 0, 1), 9, greedy_sampler(3)))
    assert outcome.error is not None
    assert f"position {9 + row}" in outcome.error
    assert outcome.path == tuple(range(row + 1))
    assert outcome.tokens == (2, 1, 0)[:row]


def test_row_off_the_path_may_be_anything() -> None:
    logits = np.array([[0, 1], [np.nan, np.nan]], np.float32)
    outcome = RULE.accept(Verification(0, logits, (0,), (-1,), 0, greedy_sampler(2)))
    assert outcome.tokens == (1,)
    assert outcome.error is None


def test_greedy_takes_the_highest_and_the_first_of_equals() -> None:
    sampler = greedy_sampler(4)
    assert sampler.sample(np.array([0, 3, 3, 1], np.float32), 0) == 1
    assert sampler.sample(np.array([-5, -4, -3, -3], np.float32), 0) == 2
    assert sampler.law(np.array([0, 3, 3, 1], np.float32), 0).tolist() == [0, 1, 0, 0]


def test_greedy_never_looks_at_padding() -> None:
    sampler = greedy_sampler(2)
    assert sampler.sample(np.array([0, 1, 9], np.float32), 0) == 1
    assert sampler.sample(np.array([0, 1, np.nan], np.float32), 0) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 1, 50, 99])
def test_greedy_refuses_what_is_not_finite(bad: float, where: int) -> None:
    logits = np.linspace(-1, 1, 100, dtype=np.float32)
    logits[where] = bad
    with pytest.raises(NonFiniteLogitsError, match="position 12"):
        greedy_sampler(100).sample(logits, 12)


def rows_of_logits(size: int) -> Iterator[NDArray[np.float32]]:
    """Random rows, rows full of ties, and rows whose highest number stands at any place, at the ends above all."""
    generator = np.random.default_rng(size)
    yield generator.standard_normal(size, dtype=np.float32)
    yield generator.integers(0, 3, size).astype(np.float32)
    yield np.where(generator.integers(0, 2, size) == 1, np.float32(0), np.float32(-0.0))
    yield np.full(size, -7, np.float32)
    yield np.full(size, np.finfo(np.float32).min)
    yield np.full(size, 1e-45, np.float32)
    for place in {0, size // 2, size - 1, *generator.integers(0, size, 8).tolist()}:
        row = generator.standard_normal(size, dtype=np.float32)
        row[place] = row[size - 1] = np.finfo(np.float32).max
        yield row


@pytest.mark.parametrize("size", [*range(1, 70), 4095, 4096, 4097, 8192, 12345, 49152])
def test_greedy_is_the_argmax_of_the_vocabulary(size: int) -> None:
    sampler = greedy_sampler(size)
    for row in rows_of_logits(size):
        padded = np.concatenate([row, np.array([np.inf, np.nan, 9e9], np.float32)])
        for read_only in (row, padded[:size], padded):
            read_only.flags.writeable = False
            assert sampler.sample(read_only, 0) == int(row.argmax())


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 100, 4096, 4100, 49152])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_greedy_sees_what_is_not_finite_wherever_it_stands(size: int, bad: float) -> None:
    for place in {*range(min(size, 20)), size // 2, size - 1}:
        for row in (np.zeros(size, np.float32), np.arange(size, dtype=np.float32)):
            row[place] = bad
            with pytest.raises(NonFiniteLogitsError):
                greedy_sampler(size).sample(row, 0)
            with pytest.raises(NonFiniteLogitsError):
                greedy_sampler(size, banned=range(1, size)).sample(row, 0)


def test_greedy_refuses_rows_that_it_would_misread() -> None:
    sampler = greedy_sampler(4)
    for row in (np.zeros(3, np.float32), np.zeros(4), np.zeros(4, np.int32), np.zeros((4, 4), np.float32)):
        with pytest.raises(ValueError, match="float32"):
            sampler.sample(row, 0)  # type: ignore[arg-type]


def test_parents_precede_their_children() -> None:
    check_parents((-1, -1, 0, 2))
    for parents in ((0,), (-2,), (-1, 1), (-1, 0, 3)):
        with pytest.raises(ValueError, match="names parent"):
            check_parents(parents)
        with pytest.raises(ValueError, match="names parent"):
            verify((0,) * len(parents), parents, (0,) * 5)


def test_registry() -> None:
    assert create_acceptance_rule("match").is_token_identical
    with pytest.raises(UsageError, match="unknown acceptance rule 'mach'; did you mean 'match'"):
        create_acceptance_rule("mach")


def test_a_banned_token_is_never_drawn() -> None:
    sampler = greedy_sampler(5, banned=[2, 4, 9])
    logits = np.array([1.0, 3.0, 7.0, 3.0, 8.0, 9.0], np.float32)
    assert sampler.sample(logits, 0) == 1
    assert sampler.law(logits, 0).tolist() == [0, 1, 0, 0, 0]
    assert logits[2] == 7.0
    with pytest.raises(UsageError, match="leaves none of 2 tokens"):
        greedy_sampler(2, banned=range(5))
