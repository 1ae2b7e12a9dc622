"""Grammars by enumeration: the law of what is emitted is the target's under the grammar's mask, to 1e-12.

The grammar is a compiled one; drafts hold illegal tokens, end tokens, and tokens behind both.
"""

from collections.abc import Callable

import numpy as np
import pytest
from rule_enumeration import (
    Chances,
    Drafted,
    Drafter,
    MakeDrafted,
    Target,
    Tokens,
    error,
    many_steps,
    mean_accepted,
    random_law,
    step_error,
)
from toy_grammars import regex
from toy_processors import plain

from paceline.acceptance import AcceptanceRule, BlockRule, Law, MatchRule, RejectionRule
from paceline.acceptance.processors.bits import unpacked
from paceline.engine.legality import legal_part
from paceline.proposers import Draft, DraftDistribution

EXACT, BROKEN = 1e-12, 1e-3
END = 0
TEXTS = [b"", b"a", b"b"]
GRAMMAR = regex(TEXTS, "[ab](ab|b)*")
RULES: list[AcceptanceRule] = [MatchRule(), RejectionRule(), BlockRule()]
RATIO_RULES: list[AcceptanceRule] = [RejectionRule(), BlockRule()]
by_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
by_ratio_rule = pytest.mark.parametrize("rule", RATIO_RULES, ids=lambda rule: rule.name)


def masked(logits: np.ndarray, prefix: Tokens) -> Law:  # type: ignore[type-arg]
    """Raises RuntimeError for a row behind an illegal token: nothing may ask for one."""
    law = plain(logits, prefix)
    mask = GRAMMAR.mask([END])
    if mask.is_active(prefix):
        law = np.where(unpacked(mask.allowed(prefix), len(TEXTS)), law, 0.0)
    return law / law.sum()


TARGET = Target(3, 31, masked)


def draft_law(prefix: Tokens) -> Law:
    return random_law(3, 71, len(prefix), *prefix)


def legal(draft: MakeDrafted) -> MakeDrafted:
    """What the engine makes of a draft that it may cut."""

    def cut(committed: Tokens, chances: Chances) -> Drafted:
        whole = draft(committed, chances)
        mask = GRAMMAR.mask([END])
        mask.extend(committed)
        q = None if whole.q is None else DraftDistribution(whole.q)
        part = legal_part(Draft(0, whole.tokens, whole.parents, q), mask)
        return Drafted(part.tokens, part.parents, None if part.q is None else part.q.q)

    return cut


@by_rule
@pytest.mark.parametrize("shape", [(1,), (1, 1, 1), (2, 1), (1, 2)])
def test_sampled_draft_as_it_comes(rule: AcceptanceRule, shape: Tokens) -> None:
    assert step_error(rule, TARGET, Drafter(draft_law, shape).draft, len(shape) + 1) < EXACT


@by_rule
@pytest.mark.parametrize("cut", [legal, lambda draft: draft], ids=["cut", "whole"])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (3, 2), (1, 3)])
def test_deterministic_draft(rule: AcceptanceRule, cut: Callable[[MakeDrafted], MakeDrafted], shape: Tokens) -> None:
    for key in range(6):
        drafter = Drafter(lambda prefix, key=key: random_law(3, 72, key, *prefix), shape, is_sampled=False)
        assert step_error(rule, TARGET, cut(drafter.draft), min(len(shape) + 1, 4)) < EXACT


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1), (1, 2)])
def test_match_takes_cut_samples(shape: Tokens) -> None:
    draft = Drafter(draft_law, shape).draft
    assert step_error(MatchRule(), TARGET, legal(draft), len(shape) + 1) < EXACT


@by_ratio_rule
def test_cut_of_a_sampled_draft_is_not_exact(rule: AcceptanceRule) -> None:
    """The mistake that the engine does not make: a sampled token dropped because it is illegal."""
    draft = Drafter(draft_law, (1, 1, 1)).draft
    assert step_error(rule, TARGET, draft, 4) < EXACT
    assert step_error(rule, TARGET, legal(draft), 4) > BROKEN


@by_ratio_rule
def test_draft_under_the_grammar(rule: AcceptanceRule) -> None:
    """q masked while drafting: exact too, and more of it stands."""

    def masked_law(prefix: Tokens) -> Law:
        mask, q = GRAMMAR.mask([END]), draft_law(prefix)
        if mask.is_active(prefix):
            q = np.where(unpacked(mask.allowed(prefix), len(TEXTS)), q, 0.0)
        return q / q.sum()

    masked_draft, draft = Drafter(masked_law, (1, 1, 1)).draft, Drafter(draft_law, (1, 1, 1)).draft
    assert step_error(rule, TARGET, masked_draft, 4) < EXACT
    assert mean_accepted(rule, TARGET, masked_draft) > mean_accepted(rule, TARGET, draft) + 0.05


@by_rule
def test_steps_one_after_another(rule: AcceptanceRule) -> None:
    draft = Drafter(draft_law, (1,)).draft
    emitted = many_steps(rule, TARGET, legal(draft) if rule.is_token_identical else draft, 3)
    assert error(TARGET, 3, emitted) < EXACT
