"""Every exact rule with the product's own sampler behind it, by enumeration, for each parameter that changes p.

The target's law is what plain decoding draws from: a sampler that was told of every token before. The rules ask another
one, told of what is committed alone, about rows behind a draft.
"""

import numpy as np
import pytest
from real_processors import SETTINGS, SampledTarget, Setting, forgetful_processors
from rule_enumeration import Drafter, Target, Tokens, error, many_steps, random_law, step_error

from paceline.acceptance import AcceptanceRule, BlockRule, Law, MatchRule, RejectionRule
from paceline.acceptance.canonical import CanonicalSampler
from paceline.sampling_params import SamplingParams

EXACT, BROKEN = 1e-12, 1e-3
RULES: list[AcceptanceRule] = [MatchRule(), RejectionRule(), BlockRule()]
by_name = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
by_setting = pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
SHAPES: list[Tokens] = [(1, 1, 1), (2, 1), (1, 2)]


def drafter(target: Target, shape: Tokens, *, is_sampled: bool, key: int = 81) -> Drafter:
    def law(prefix: Tokens) -> Law:
        return random_law(target.vocab_size, key, len(prefix), *prefix)

    return Drafter(law, shape, is_sampled=is_sampled)


@by_name
@by_setting
@pytest.mark.parametrize("is_sampled", [False, True])
def test_chains_and_trees(rule: AcceptanceRule, setting: Setting, is_sampled: bool) -> None:
    for shape in SHAPES:
        target = SampledTarget(3, 91, setting)
        assert step_error(rule, target, drafter(target, shape, is_sampled=is_sampled).draft, len(shape) + 1) < EXACT


@by_name
@by_setting
def test_chains_of_four(rule: AcceptanceRule, setting: Setting) -> None:
    for is_sampled in (False, True):
        target = SampledTarget(2, 92, setting)
        assert step_error(rule, target, drafter(target, (1, 1, 1, 1), is_sampled=is_sampled).draft, 5) < EXACT


@by_name
@by_setting
def test_steps_one_after_another(rule: AcceptanceRule, setting: Setting) -> None:
    """What one step commits, the next one's sampler is told of."""
    target = SampledTarget(2, 93, setting)
    shapes = [(1, 1), (1, 1, 1), (2,), (1,)]
    drafters = [drafter(target, shape, is_sampled=True) for shape in shapes]
    emitted = many_steps(rule, target, lambda committed, chances: drafters[len(committed)].draft(committed, chances), 4)
    assert error(target, 4, emitted) < EXACT


@by_setting
def test_the_laws_depend_on_the_text(setting: Setting) -> None:
    """What is enumerated is not by chance the same behind every text: one row, behind all texts of two tokens."""
    row = np.array([0.4, -0.3, 0.9], np.float32)
    laws = set()
    for first in range(3):
        for second in range(3):
            sampler = setting.sampler(3)
            sampler.extend((first, second))
            laws.add(sampler.law(row, 3).tobytes())
    sampler = setting.sampler(3)
    laws.add(sampler.law(row, 1).tobytes())
    assert (len(laws) > 1) == setting.depends_on_text


@by_name
@pytest.mark.parametrize("name", forgetful_processors(3))
def test_processors_that_ignore_the_draft_are_not_exact(rule: AcceptanceRule, name: str) -> None:
    [setting] = (each for each in SETTINGS if each.name == name)
    create = forgetful_processors(3)[name]

    def make() -> CanonicalSampler:
        return CanonicalSampler(0, SamplingParams(temperature=1.0), [create()], 3)

    for is_sampled in (False, True):
        drafts = [
            drafter(SampledTarget(3, 91, setting), (1, 1, 1), is_sampled=is_sampled, key=81 + i).draft for i in range(6)
        ]
        broken = [step_error(rule, SampledTarget(3, 91, setting, make), draft, 4) for draft in drafts]
        assert max(broken) > BROKEN
        assert max(step_error(rule, SampledTarget(3, 91, setting), draft, 4) for draft in drafts) < EXACT
