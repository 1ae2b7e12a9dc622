"""The rules' drawing path: that it follows their laws, what it is keyed by, and what it refuses."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rule_enumeration import (
    Chances,
    Drafted,
    Drafter,
    EnumeratedSampler,
    Row,
    Target,
    Tokens,
    explore,
    one_step,
    random_law,
    verification,
    verify,
)
from toy_processors import plain

from paceline.acceptance import (
    BlockRule,
    Law,
    RejectionRule,
    TypicalRule,
    Verification,
    draws,
    reference,
)
from paceline.acceptance.draws import KeyedDraws
from paceline.acceptance.noise import Stream, gumbel, uniform_of
from paceline.acceptance.reference import DrawParams

EXACT = 1e-12
TARGET = Target(3, 31, plain)
TYPICAL = TypicalRule(allow_lossy=True)
SHAPES: list[Tokens] = [(), (1,), (1, 1, 1), (2, 1), (1, 2)]


def draft_law(prefix: Tokens) -> Law:
    return random_law(3, 71, len(prefix), *prefix)


# The drawing path has the enumerated law


class Prescribed:
    """Noise that lies where a way of the enumeration needs it, at one end of what that way covers."""

    def __init__(self, chances: Chances, token: int, *, is_high: bool) -> None:
        self._known = chances.known
        self._token = token
        self._is_high = is_high

    def uniform_of(self, seed: int, position: int, token: int, stream: Stream) -> float:
        assert (seed, stream) == (EnumeratedSampler.seed, Stream.ACCEPT)
        low, high = self._known.get(("accept", position, token), (0.0, 1.0))  # unknown: the answer is certain
        return float(np.nextafter(high, 0.0)) if self._is_high else low

    def gumbel(self, seed: int, position: int, tokens: NDArray[np.int64], stream: Stream) -> NDArray[np.float64]:  # noqa: ARG002
        assert (seed, stream) == (EnumeratedSampler.seed, Stream.RESIDUAL)
        return np.where(tokens == self._token, 1e6, 0.0)


@pytest.mark.parametrize("rule", [RejectionRule(), BlockRule(), TYPICAL], ids=lambda rule: rule.name)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_sampled", [False, True])
def test_accept_goes_every_enumerated_way(
    rule: RejectionRule, shape: Tokens, is_sampled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At both ends of every uniform, down to its last bit."""
    drafter = Drafter(draft_law, shape, is_sampled=is_sampled)
    for drawn, drafted in explore(lambda chances: drafter.draft((), chances)):
        for chances, outcome in explore(verify(rule, TARGET, drafted), drawn.known):
            for is_high in (False, True):
                noise = Prescribed(chances, outcome.tokens[-1], is_high=is_high)
                monkeypatch.setattr(draws, "uniform_of", noise.uniform_of)
                monkeypatch.setattr(draws, "gumbel", noise.gumbel)
                assert rule.accept(verification(TARGET, (), drafted, Chances(known=chances.known))) == outcome


@pytest.mark.parametrize(
    ("rule", "function", "other"),
    [
        (RejectionRule, "accept_probability", lambda *_: 0.5),
        (RejectionRule, "residual", lambda *given: given[2]),
        (BlockRule, "joint_ratio", lambda *given: 0.5 * given[1]),
        (BlockRule, "stand_probability", lambda *_: 0.5),
        (BlockRule, "joint_residual", lambda *given: given[3]),
        (TypicalRule, "accept_probability", lambda *_: 0.5),
        (TypicalRule, "residual", lambda *given: given[2]),
    ],
)
def test_functions_of_the_law_are_those_that_draw(
    rule: type[RejectionRule], function: str, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another function in its place, `accept` itself goes other ways."""

    def outcomes() -> list[Tokens]:
        made = TypicalRule(allow_lossy=True, epsilon=0.4, delta=1.0) if rule is TypicalRule else rule()
        drafts = [Drafter(draft_law, (1, 1, 1)).draft((), Chances([i % 2 == 0, i % 3 == 0])) for i in range(6)]
        return [
            made.accept(
                replace(verification(TARGET, (), drafted, Chances()), sampler=KeyedSampler(TARGET, seed))
            ).tokens
            for drafted in drafts
            for seed in range(20)
        ]

    before = outcomes()
    monkeypatch.setattr(rule, function, other)
    assert outcomes() != before


def test_a_block_of_one_is_judged_as_by_rejection() -> None:
    p, q = TARGET.law(()), draft_law(())
    block, rejection = BlockRule(), RejectionRule()
    for token in range(3):
        assert block.joint_ratio(1.0, p, q, token) == rejection.accept_probability(p, q, token)
        assert block.accept_probability(p, q, token) == rejection.accept_probability(p, q, token)
    assert (block.joint_residual(1.0, p, q) == rejection.residual(p, q, 0)).all()


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_no_q_is_a_point_mass(shape: Tokens) -> None:
    drafted = Drafter(draft_law, shape, is_sampled=False).draft((), Chances())
    q = np.eye(3)[list(drafted.tokens)]
    for rule in (RejectionRule(), BlockRule()):
        laws = []
        for given in (drafted, replace(drafted, q=q)):
            law: dict[Tokens, float] = {}
            for probability, outcome in one_step(rule, TARGET, lambda *_, given=given: given):
                law[outcome.tokens] = law.get(outcome.tokens, 0.0) + probability
            laws.append(law)
        assert all(abs(laws[0].get(tokens, 0) - laws[1].get(tokens, 0)) < EXACT for tokens in laws[0] | laws[1])


# Keys


class KeyedSampler:
    """The target's tokens by the canonical sampler, with the noise that belongs to it."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self.seed = seed

    def sample(self, logits: Row, position: int, drafted: Sequence[int] = ()) -> int:  # noqa: ARG002
        return reference.sample(logits, DrawParams(), self.seed, position)

    def law(self, logits: Row, position: int, drafted: Sequence[int] = ()) -> Law:  # noqa: ARG002
        law: Law = reference.law(logits, DrawParams())
        return law

    def extend(self, tokens: Sequence[int]) -> None:
        raise NotImplementedError


def keyed_draft(seed: int, committed: Tokens, length: int) -> Drafted:
    """A chain drawn with noise of the step's own."""
    tokens, rows, prefix = list[int](), list[Law](), committed[-3:]
    for index in range(length):
        q = draft_law(prefix)
        noise = gumbel(seed, 1000 * len(committed) + index, np.arange(3), Stream.DRAFT)
        rows.append(q)
        tokens.append(int((np.log(q) + noise).argmax()))
        prefix = (*prefix, tokens[-1])[-3:]
    return Drafted(tuple(tokens), tuple(range(-1, length - 1)), np.array(rows))


def keyed_text(
    rule: RejectionRule, seed: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Tokens, list[Any]]:
    """A text of many steps, and every key of noise that the rule looked at."""
    keys = list[Any]()

    def recording_uniform(*key: Any) -> float:
        keys.append(key)
        return uniform_of(*key)

    def recording_gumbel(seed: int, position: int, tokens: NDArray[np.int64], stream: Stream) -> Any:
        keys.append((seed, position, stream))
        return gumbel(seed, position, tokens, stream)

    monkeypatch.setattr(draws, "uniform_of", recording_uniform)
    monkeypatch.setattr(draws, "gumbel", recording_gumbel)
    text: Tokens = (1,)
    target = Target(3, 32, plain)
    while len(text) < length:
        drafted = keyed_draft(seed, text, 4)
        rows = np.array([target.logits((*text, *drafted.tokens[:i])[-3:]) for i in range(5)])
        given = Verification(0, rows, drafted.tokens, drafted.parents, len(text), KeyedSampler(target, seed), drafted.q)
        text += rule.accept(given).tokens
    return text, keys


@pytest.mark.parametrize("rule", [RejectionRule(), BlockRule()], ids=lambda rule: rule.name)
def test_no_number_is_looked_at_twice(rule: RejectionRule, monkeypatch: pytest.MonkeyPatch) -> None:
    text, keys = keyed_text(rule, 5, 100, monkeypatch)
    assert len(keys) > 50
    assert len(set(keys)) == len(keys)
    assert {key[0] for key in keys} == {5}
    assert {key[-1] for key in keys} == {Stream.ACCEPT, Stream.RESIDUAL}
    assert keyed_text(rule, 5, 100, monkeypatch)[0] == text
    assert keyed_text(rule, 6, 100, monkeypatch)[0] != text


def test_residual_token_is_the_argmax_of_its_law_and_noise() -> None:
    generator = np.random.default_rng(8)
    for position in range(50):
        law = generator.dirichlet(np.full(9, 0.5))
        law[generator.integers(0, 9, 4)] = 0.0
        law /= law.sum()
        with np.errstate(divide="ignore"):
            scores = np.log(law) + gumbel(3, position, np.arange(9), Stream.RESIDUAL)
        assert KeyedDraws(3, 0).token(position, law) == int(scores.argmax())


def test_ties_go_to_the_lowest_id_and_what_has_no_logarithm_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "gumbel", lambda *key: np.zeros(len(key[2])))
    assert KeyedDraws(0, 0).token(0, np.array([0.0, 0.2, 0.4, 0.4])) == 2
    assert KeyedDraws(0, 0).token(0, np.array([5e-324, 1e-310, 1.0])) == 2
