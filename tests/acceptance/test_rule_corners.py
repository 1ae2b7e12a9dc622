"""Corner cases of the rules: rounding, logits that are not finite, drafts that are refused, names and promises."""

from dataclasses import replace

import numpy as np
import pytest
from rule_enumeration import Chances, Drafted, Drafter, Target, Tokens, one_step, random_law, step_error, verification
from samplers import greedy_sampler
from toy_processors import greedy, plain

from paceline.acceptance import (
    ACCEPTANCE_RULES,
    BlockRule,
    Law,
    MatchRule,
    RejectionRule,
    TypicalRule,
    create_acceptance_rule,
    without,
)
from paceline.errors import UsageError

EXACT = 1e-12
TARGET = Target(3, 31, plain)
TYPICAL = TypicalRule(allow_lossy=True)


def draft_law(prefix: Tokens) -> Law:
    return random_law(3, 71, len(prefix), *prefix)


@pytest.mark.parametrize("rule", [MatchRule(), RejectionRule(), BlockRule()], ids=lambda rule: rule.name)
@pytest.mark.parametrize("shape", [(), (1, 1, 1), (2, 1)])
@pytest.mark.parametrize("is_sampled", [False, True])
def test_rows_that_are_not_finite_end_the_text_and_nothing_else(
    rule: RejectionRule, shape: Tokens, is_sampled: bool
) -> None:
    """Up to the row that decides nothing the text is the target's; a row that is not on the path may be anything."""
    drafter = Drafter(draft_law, shape, is_sampled=is_sampled)
    num_rows = 1 + len(drafter.draft((), Chances()).tokens)
    for bad in range(num_rows):

        def draft(committed: Tokens, chances: Chances, bad: int = bad) -> Drafted:
            return replace(drafter.draft(committed, chances), bad_rows=(bad,))

        assert step_error(rule, TARGET, draft, len(shape) + 1) < EXACT
        outcomes = one_step(rule, TARGET, draft)
        assert any(outcome.error for _, outcome in outcomes)
        assert all((outcome.error is not None) == (bad in outcome.path) for _, outcome in outcomes)
        assert all(outcome.path[-1] == bad for _, outcome in outcomes if outcome.error)


def test_nothing_is_left_by_rounding() -> None:
    """p and q are equal but for the last bits: a rejection has no probability but that of rounding, and p is drawn."""
    p = np.array([0.1, 0.2, 0.7])
    assert (RejectionRule().residual(p, p, 0) == p).all()
    assert (RejectionRule().residual(p, np.nextafter(p, 1.0), 0) == p).all()
    assert (BlockRule().joint_residual(1.0, p, p) == p).all()
    assert (BlockRule().joint_residual(0.0, p, p) == p).all()
    assert BlockRule().stand_probability(1.0, p, p) == 1.0
    assert BlockRule().stand_probability(0.0, p, p) == 0.0


def test_ratios_do_not_overflow() -> None:
    p, q = np.array([1.0, 0.0]), np.array([5e-324, 1.0])
    assert RejectionRule().accept_probability(p, q, 0) == 1.0
    assert RejectionRule().accept_probability(p, q, 1) == 0.0
    assert BlockRule().joint_ratio(0.0, p, q, 0) == 0.0
    assert (RejectionRule().residual(p, q, 1) == p).all()


def test_rejection_at_temperature_zero_is_match() -> None:
    target = Target(3, 33, greedy)
    for shape in ((), (1,), (1, 1, 1), (2, 1)):
        drafted = Drafter(draft_law, shape, is_sampled=False).draft((), Chances())
        given = replace(verification(target, (), drafted, Chances()), sampler=greedy_sampler(3))
        assert RejectionRule().accept(given) == MatchRule().accept(given) == BlockRule().accept(given)


def test_equal_siblings_cost_nothing_but_their_rows() -> None:
    drafted = Drafted((1, 1, 2), (-1, -1, 0), None)
    assert step_error(RejectionRule(), TARGET, lambda *_: drafted, 3) < EXACT


@pytest.mark.parametrize("rule", [RejectionRule(), BlockRule()], ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    ("token", "q", "message"),
    [
        (
            1,
            [[1.0, 0.0, 0.0]],
            r"draft token 1 \(number 0 of sequence 3\) was not drawn from its q, which gives it 0.0",
        ),
        (1, [[0.2, 0.2, 0.2]], r"sums to 0.6"),
        (1, [[0.2, 0.2, 0.6000001]], r"sums to 1.0000001"),
        (1, [[np.nan, 0.5, 0.5]], "sums to nan"),
        (1, [[1.5, -0.5, 0.0]], "gives it -0.5"),
        (1, [[0.5, 0.5]], r"shape \(1, 2\); expected \(1, 3\)"),
        (1, [[0.5, 0.5, 0.0]] * 2, r"shape \(2, 3\); expected \(1, 3\)"),
        (3, [[0.5, 0.5, 0.0]], "no id of the vocabulary; expected 0 to 2"),
        (3, None, "no id of the vocabulary; expected 0 to 2"),
    ],
)
def test_a_draft_that_its_q_did_not_give_is_refused(
    rule: RejectionRule, token: int, q: list[list[float]] | None, message: str
) -> None:
    drafted = Drafted((token,), (-1,), None if q is None else np.array(q))
    with pytest.raises(RuntimeError, match=message):
        rule.accept(verification(TARGET, (), drafted, Chances()))


def test_a_token_without_probability_has_no_ratio() -> None:
    with pytest.raises(RuntimeError, match=r"probability 0\.0 in its own q"):
        RejectionRule().accept_probability(np.array([1.0, 0.0]), np.array([1.0, 0.0]), 1)


@pytest.mark.parametrize("rule", [RejectionRule(), BlockRule()], ids=lambda rule: rule.name)
def test_parents_that_do_not_precede_are_refused(rule: RejectionRule) -> None:
    given = verification(TARGET, (), Drafted((1, 1), (-1, 0), None), Chances())
    with pytest.raises(ValueError, match="names parent"):
        rule.accept(replace(given, parents=(1, -1)))


def test_without() -> None:
    q = np.array([0.5, 0.25, 0.25, 0.0])
    assert without(q, [0]).tolist() == [0.0, 0.5, 0.5, 0.0]
    assert without(q, []).tolist() == q.tolist()
    with pytest.raises(ValueError, match="every token"):
        without(q, [0, 1, 2])


def test_what_each_rule_promises() -> None:
    rules = {name: create_acceptance_rule(name) for name in ACCEPTANCE_RULES if name != "typical"}
    assert [name for name, rule in rules.items() if rule.is_token_identical] == ["match"]
    assert sorted(name for name, rule in rules.items() if rule.is_lossless) == ["block", "match", "rejection"]
    typical = create_acceptance_rule("typical", allow_lossy=True)
    assert not typical.is_lossless
    assert not typical.is_token_identical


@pytest.mark.parametrize("options", [{}, {"allow_lossy": False}, {"allow_lossy": "false"}, {"allow_lossy": 1}])
def test_lossy_acceptance_must_be_asked_for(options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"'typical' is lossy.*set allow_lossy to True"):
        create_acceptance_rule("typical", **options)


@pytest.mark.parametrize("option", ["epsilon", "delta"])
@pytest.mark.parametrize("number", [0.0, -1.0, 1.1, float("nan")])
def test_thresholds_of_typical_acceptance(option: str, number: float) -> None:
    with pytest.raises(UsageError, match=f"{option} of the acceptance rule 'typical' is {number}"):
        create_acceptance_rule("typical", allow_lossy=True, **{option: number})


def test_typical_acceptance_compares_with_the_entropy() -> None:
    flat, peaked = np.full(4, 0.25), np.array([0.97, 0.01, 0.01, 0.01])
    q = np.full(4, 0.25)
    assert TYPICAL.accept_probability(flat, q, 0) == 1.0  # min(0.09, 0.3 / 4) = 0.075
    assert TYPICAL.accept_probability(peaked, q, 0) == 1.0
    assert TYPICAL.accept_probability(peaked, q, 1) == 0.0
    narrow = TypicalRule(allow_lossy=True, epsilon=0.5, delta=1.0)
    assert narrow.accept_probability(np.full(2, 0.5), np.full(2, 0.5), 0) == 0.0  # not above 0.5
    assert narrow.accept_probability(np.array([0.6, 0.4]), np.full(2, 0.5), 0) == 1.0
