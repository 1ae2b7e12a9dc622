"""What is not exact fails the enumeration of `test_laws`, whether a rule, a proposer or a controller breaks it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from rule_enumeration import (
    Chances,
    Drafted,
    Drafter,
    EnumeratedDraws,
    MakeDraws,
    Target,
    Tokens,
    cut_at,
    error,
    many_steps,
    one_step,
    random_law,
    step_error,
)
from toy_processors import greedy, plain

from paceline.acceptance import (
    AcceptanceRule,
    BlockRule,
    Law,
    MatchRule,
    Outcome,
    RejectionRule,
    TypicalRule,
    Verification,
)
from paceline.acceptance.draws import Draws

EXACT, BROKEN = 1e-12, 1e-3
TARGET = Target(3, 24, plain)
CHAIN = (1, 1, 1)
RATIO_RULES: list[AcceptanceRule] = [RejectionRule(), BlockRule()]
by_ratio_rule = pytest.mark.parametrize("rule", RATIO_RULES, ids=lambda rule: rule.name)


def draft_law(prefix: Tokens) -> Law:
    return random_law(3, 61, len(prefix), *prefix)


def law_of_the_depth(prefix: Tokens) -> Law:
    return random_law(3, 64, len(prefix))


SAMPLED = Drafter(draft_law, CHAIN)
DETERMINISTIC = Drafter(draft_law, CHAIN, is_sampled=False)


def fixed_law(*law: float) -> Callable[[Tokens], Law]:
    return lambda prefix: np.array(law)  # noqa: ARG005


# Rules


def test_typical_acceptance_is_not_exact() -> None:
    rule = TypicalRule(allow_lossy=True)
    for drafter in (SAMPLED, DETERMINISTIC, Drafter(draft_law, (2, 1))):
        assert step_error(rule, TARGET, drafter.draft, 3) > BROKEN


def test_typical_acceptance_is_exact_only_where_nothing_is_random() -> None:
    target = Target(3, 22, greedy)
    assert step_error(TypicalRule(allow_lossy=True), target, SAMPLED.draft, 4) < EXACT


class BlockWithoutQ(BlockRule):
    """Judges a deterministic draft as a block whose q is 1 in the ratio and 0 in the sums."""

    def joint_ratio(self, ratio: float, p: Law, q: Law, token: int) -> float:  # noqa: ARG002
        return ratio * float(p[token])

    def stand_probability(self, ratio: float, p: Law, q: Law) -> float:
        return super().stand_probability(ratio, p, np.zeros_like(q))

    def joint_residual(self, ratio: float, p: Law, q: Law) -> Law:
        return super().joint_residual(ratio, p, np.zeros_like(q))

    def decide(self, verification: Verification, draws: Draws) -> Outcome:
        q = np.eye(verification.logits.shape[1])[list(verification.draft)]
        return super().decide(replace(verification, q=q), draws)


def test_block_without_q_is_not_exact() -> None:
    assert step_error(BlockRule(), TARGET, DETERMINISTIC.draft, 4) < EXACT
    assert step_error(BlockWithoutQ(), TARGET, DETERMINISTIC.draft, 4) > BROKEN


class RejectionWithoutResidual(RejectionRule):
    """Draws the target's own token after a rejection."""

    def residual(self, p: Law, q: Law, token: int) -> Law:  # noqa: ARG002
        return p


def test_rejection_without_residual_is_not_exact() -> None:
    for drafter in (SAMPLED, DETERMINISTIC, Drafter(draft_law, (2, 1))):
        assert step_error(RejectionWithoutResidual(), TARGET, drafter.draft, 3) > BROKEN


# Noise


@dataclass(frozen=True)
class SharedAccept(EnumeratedDraws):
    """The test of a draft token takes the number that the token was drawn by."""

    def accepts(self, index: int, probability: float) -> bool:
        return self.chances.is_below(("draft", self.begin, index), probability)


@dataclass(frozen=True)
class SharedResidual(EnumeratedDraws):
    """The token in place of a rejected one is drawn by the number that the rejected one was drawn by."""

    def token(self, position: int, law: Law) -> int:
        return self.chances.draw(("draft", self.begin, position - self.begin), law)


@by_ratio_rule
@pytest.mark.parametrize("make_draws", [SharedAccept, SharedResidual])
def test_noise_shared_with_the_draft_is_not_exact(rule: AcceptanceRule, make_draws: MakeDraws) -> None:
    assert step_error(rule, TARGET, SAMPLED.draft, 4, make_draws) > BROKEN


@dataclass(frozen=True)
class KeptAccept(EnumeratedDraws):
    """The test of a draft token takes the number of the token's position, as the step before did."""

    def accepts(self, index: int, probability: float) -> bool:
        return self.chances.is_below(("accept", self.begin + index), probability)


@pytest.mark.parametrize("is_draft_kept", [False, True])
@pytest.mark.parametrize("make_draws", [EnumeratedDraws, KeptAccept])
def test_noise_kept_for_a_position(is_draft_kept: bool, make_draws: MakeDraws) -> None:
    """Numbers kept for positions, from one step to the next, in the draft or in the tests: token by token nothing
    depends on what stands behind a rejection, but a block is judged as a whole.
    """

    def key(begin: int, position: int, index: int) -> tuple[str, int, int]:
        return ("draft", position, 0) if is_draft_kept else ("draft", begin, index)

    target = Target(2, 25, plain)
    drafter = Drafter(lambda prefix: random_law(2, 65, len(prefix)), (1, 1), key=key)
    errors = [error(target, 3, many_steps(rule, target, drafter.draft, 3, make_draws)) for rule in RATIO_RULES]
    assert errors[0] < EXACT
    assert errors[1] > BROKEN if is_draft_kept or make_draws is KeptAccept else errors[1] < EXACT


# Proposers


@by_ratio_rule
def test_another_q_than_the_true_one_is_not_exact(rule: AcceptanceRule) -> None:
    def draft(committed: Tokens, chances: Chances) -> Drafted:
        drafted = SAMPLED.draft(committed, chances)
        return replace(drafted, q=np.full((3, 3), 1 / 3))

    assert step_error(rule, TARGET, draft, 4) > BROKEN


def test_siblings_that_report_the_whole_q_are_not_exact() -> None:
    """Drawn without replacement, and judged as if each had been drawn from what the first was drawn from."""
    drafter = Drafter(law_of_the_depth, (2,))

    def draft(committed: Tokens, chances: Chances) -> Drafted:
        drafted = drafter.draft(committed, chances)
        return replace(drafted, q=np.array([law_of_the_depth(())] * 2))

    assert step_error(RejectionRule(), TARGET, drafter.draft, 2) < EXACT
    assert step_error(RejectionRule(), TARGET, draft, 2) > BROKEN


class RejectionOfRemainders(RejectionRule):
    """Judges the second sibling by what is left of q, not renormalised."""

    def accept_probability(self, p: Law, q: Law, token: int) -> float:
        return super().accept_probability(p, self._remainder(q), token)

    def residual(self, p: Law, q: Law, token: int) -> Law:
        return super().residual(p, self._remainder(q), token)

    @staticmethod
    def _remainder(q: Law) -> Law:
        whole = law_of_the_depth(())
        return np.where(q > 0.0, whole, 0.0)


def test_q_that_is_not_renormalised_is_not_exact() -> None:
    drafter = Drafter(law_of_the_depth, (2,))
    assert step_error(RejectionOfRemainders(), TARGET, drafter.draft, 2) > BROKEN


def test_siblings_out_of_order_are_not_exact() -> None:
    """Two siblings drawn without replacement, then sorted by q, each with the q that it would have had there."""
    law = law_of_the_depth(())

    def draft(committed: Tokens, chances: Chances) -> Drafted:
        drafted = Drafter(law_of_the_depth, (2,)).draft(committed, chances)
        first, second = sorted(drafted.tokens, key=lambda token: -law[token])
        rest = np.where(np.arange(3) == first, 0.0, law)
        return replace(drafted, tokens=(first, second), q=np.array([law, rest / rest.sum()]))

    assert step_error(RejectionRule(), TARGET, draft, 2) > BROKEN


# Controllers


@by_ratio_rule
def test_cut_that_looks_at_what_it_cuts_is_not_exact(rule: AcceptanceRule) -> None:
    assert step_error(rule, TARGET, cut_at(SAMPLED.draft, 0, is_kept=False), 4) > BROKEN
    assert step_error(rule, TARGET, cut_at(SAMPLED.draft, 0, is_kept=True), 4) < EXACT
    assert step_error(rule, TARGET, cut_at(DETERMINISTIC.draft, 2, is_kept=False), 4) < EXACT
    assert step_error(MatchRule(), TARGET, cut_at(SAMPLED.draft, 0, is_kept=False), 4) < EXACT


@by_ratio_rule
def test_published_example_of_such_a_cut(rule: AcceptanceRule) -> None:
    """p = (0.7, 0.3), q = (0.5, 0.5), a drafted token 1 is dropped: the text gets (0.85, 0.15)."""
    target = Target(2, 0, lambda logits, prefix: np.array([0.7, 0.3]))  # noqa: ARG005
    draft = cut_at(Drafter(fixed_law(0.5, 0.5), (1,)).draft, 1, is_kept=False)
    first = sum(probability for probability, outcome in one_step(rule, target, draft) if outcome.tokens[0] == 0)
    assert abs(first - 0.85) < EXACT


@by_ratio_rule
def test_choice_between_drafts_that_looks_at_them_is_not_exact(rule: AcceptanceRule) -> None:
    """The likelier of two sampled tokens."""

    def draft(committed: Tokens, chances: Chances) -> Drafted:
        both = [Drafter(law_of_the_depth, (1,), key=lambda *_, i=i: i).draft(committed, chances) for i in range(2)]
        return max(both, key=lambda drafted: law_of_the_depth(())[drafted.tokens[0]])

    assert step_error(rule, TARGET, draft, 2) > BROKEN
    assert step_error(MatchRule(), TARGET, draft, 2) < EXACT
