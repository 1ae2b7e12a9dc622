"""Every exact rule by enumeration: the law of the emitted sequence is the target's, to 1e-12, whatever is drafted."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pytest
from rule_enumeration import (
    Drafter,
    Processed,
    Target,
    Tokens,
    cut_at,
    error,
    many_steps,
    mean_accepted,
    one_step,
    random_law,
    step_error,
)
from toy_processors import PROCESSED, frequency_penalty, plain

from paceline.acceptance import AcceptanceRule, BlockRule, Law, MatchRule, RejectionRule

EXACT = 1e-12
EXACT_RULES: list[AcceptanceRule] = [MatchRule(), RejectionRule(), BlockRule()]
RATIO_RULES: list[AcceptanceRule] = [RejectionRule(), BlockRule()]
DraftLaw = Callable[[Tokens], Law]
MakeLaw = Callable[[Target], DraftLaw]

by_name = pytest.mark.parametrize("rule", EXACT_RULES, ids=lambda rule: rule.name)
by_ratio_rule = pytest.mark.parametrize("rule", RATIO_RULES, ids=lambda rule: rule.name)
by_processors = pytest.mark.parametrize("processed", PROCESSED, ids=lambda processed: processed.__name__)


def of_the_depth(target: Target) -> DraftLaw:
    return lambda prefix: random_law(target.vocab_size, 50, len(prefix))


def of_the_prefix(target: Target) -> DraftLaw:
    return lru_cache(None)(lambda prefix: random_law(target.vocab_size, 51, len(prefix), *prefix))


def with_zeros(target: Target) -> DraftLaw:
    def law(prefix: Tokens) -> Law:
        q = random_law(target.vocab_size, 52, *prefix).copy()
        q[(sum(prefix) + len(prefix)) % target.vocab_size] = 0.0
        return q / q.sum()

    return lru_cache(None)(law)


def near_one_hot(target: Target) -> DraftLaw:
    def law(prefix: Tokens) -> Law:
        q = 1e-9 * random_law(target.vocab_size, 53, *prefix)
        q[(1 + 2 * sum(prefix)) % target.vocab_size] += 1.0 - q.sum()
        return q

    return law


def only_zero(target: Target) -> DraftLaw:
    """Of no token that `banned_zero` leaves: the supports of p and q are disjoint."""
    return lambda prefix: np.eye(target.vocab_size)[0]  # noqa: ARG005


def of_the_target(target: Target) -> DraftLaw:
    return target.law


DRAFT_LAWS: list[MakeLaw] = [of_the_depth, of_the_prefix, with_zeros, near_one_hot, only_zero, of_the_target]
by_draft_law = pytest.mark.parametrize("make_law", DRAFT_LAWS, ids=lambda make: make.__name__)


@by_ratio_rule
@by_processors
@by_draft_law
def test_sampled_chain_of_three(rule: AcceptanceRule, processed: Processed, make_law: MakeLaw) -> None:
    target = Target(3, 1, processed)
    assert step_error(rule, target, Drafter(make_law(target), (1, 1, 1)).draft, 4) < EXACT


@by_ratio_rule
@by_processors
@pytest.mark.parametrize("make_law", [of_the_prefix, with_zeros], ids=lambda make: make.__name__)
def test_sampled_chain_of_four(rule: AcceptanceRule, processed: Processed, make_law: MakeLaw) -> None:
    target = Target(2, 2, processed)
    assert step_error(rule, target, Drafter(make_law(target), (1, 1, 1, 1)).draft, 5) < EXACT


@by_name
@by_processors
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1), (2, 1), (1, 3), (3, 2)])
def test_deterministic_draft(rule: AcceptanceRule, processed: Processed, shape: Tokens) -> None:
    for seed in range(2):
        target = Target(4, 10 + seed, processed)
        drafter = Drafter(of_the_prefix(target), shape, is_sampled=False)
        assert step_error(rule, target, drafter.draft, min(len(shape) + 1, 4)) < EXACT


@by_processors
@pytest.mark.parametrize("is_with_replacement", [False, True])
@pytest.mark.parametrize(("vocab_size", "shape"), [(4, (2,)), (4, (3,)), (3, (2, 1)), (3, (1, 2)), (2, (2, 2))])
def test_sampled_tree(processed: Processed, is_with_replacement: bool, vocab_size: int, shape: Tokens) -> None:
    for make_law in (of_the_depth, with_zeros, of_the_target):
        target = Target(vocab_size, 3, processed)
        drafter = Drafter(make_law(target), shape, is_with_replacement=is_with_replacement)
        assert step_error(RejectionRule(), target, drafter.draft, len(shape) + 1) < EXACT


@by_name
def test_any_rule_takes_any_draft(rule: AcceptanceRule) -> None:
    """A rule that gains nothing from a draft's kind is exact there all the same."""
    target = Target(3, 8, frequency_penalty)
    for shape in ((1, 1, 1), (2, 1), (1, 2)):
        assert step_error(rule, target, Drafter(of_the_prefix(target), shape).draft, len(shape) + 1) < EXACT


@by_name
def test_steps_one_after_another(rule: AcceptanceRule) -> None:
    """Drafts of another length in each step, as decided by how many tokens there are, which is no sampled value."""
    target = Target(2, 4, frequency_penalty)
    law = of_the_prefix(target)
    shapes = [(1, 1), (1, 1, 1), (1,), ()]
    drafters = [Drafter(law, shape) for shape in shapes]
    emitted = many_steps(rule, target, lambda committed, chances: drafters[len(committed)].draft(committed, chances), 4)
    assert error(target, 4, emitted) < EXACT


@by_name
def test_length_that_depends_on_what_is_kept(rule: AcceptanceRule) -> None:
    """The draft ends behind the first token 0, with that token in it: decided before the next token is drawn."""
    target = Target(3, 5, frequency_penalty)
    emitted = one_step(rule, target, cut_at(Drafter(of_the_prefix(target), (1, 1, 1)).draft, 0, is_kept=True))
    assert error(target, 4, [(probability, outcome.tokens) for probability, outcome in emitted]) < EXACT


def test_chance_of_rejection_is_the_distance_of_the_laws() -> None:
    for seed in range(20):
        target = Target(4, 100 + seed, plain)
        drafter = Drafter(lambda prefix, seed=seed: random_law(4, 54, seed, *prefix), (1,))
        distance = 0.5 * float(np.abs(target.law(()) - drafter.law(())).sum())
        for rule in RATIO_RULES:
            assert abs(mean_accepted(rule, target, drafter.draft) - (1.0 - distance)) < EXACT
        assert all(
            RejectionRule().accept_probability(target.law(()), drafter.law(()), x)
            == BlockRule().joint_ratio(1.0, target.law(()), drafter.law(()), x)
            for x in range(4)
        )


def test_block_keeps_no_less_than_rejection() -> None:
    gains = []
    for seed in range(8):
        target = Target(3, 200 + seed, plain)
        drafter = Drafter(lambda prefix, seed=seed: random_law(3, 55, seed, *prefix), (1, 1, 1))
        block, rejection = (mean_accepted(rule, target, drafter.draft) for rule in (BlockRule(), RejectionRule()))
        gains.append(block - rejection)
    assert min(gains) > -EXACT
    assert max(gains) > 0.05


def test_block_keeps_as_much_of_a_deterministic_draft() -> None:
    target = Target(3, 6, plain)
    drafter = Drafter(of_the_prefix(target), (1, 1, 1), is_sampled=False)
    kept = [mean_accepted(rule, target, drafter.draft) for rule in EXACT_RULES]
    assert np.ptp(kept) < EXACT


def test_siblings_without_replacement_are_kept_more_often() -> None:
    target = Target(4, 7, plain)
    law = of_the_prefix(target)
    for width in (2, 3):
        apart, again = (
            mean_accepted(RejectionRule(), target, Drafter(law, (width,), is_with_replacement=way).draft)
            for way in (False, True)
        )
        assert apart > again + 1e-3
