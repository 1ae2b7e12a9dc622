"""Acceptance: which draft tokens stand and which token comes next. `base` holds the contract."""

from paceline.acceptance.base import (
    AcceptanceRule,
    Law,
    NonFiniteLogitsError,
    Outcome,
    Sampler,
    Verification,
    check_parents,
)
from paceline.acceptance.block import BlockRule
from paceline.acceptance.laws import without
from paceline.acceptance.match import MatchRule
from paceline.acceptance.rejection import RejectionRule
from paceline.acceptance.typical import TypicalRule
from paceline.registry import Registry

ACCEPTANCE_RULES: Registry[AcceptanceRule] = Registry(
    "acceptance rule", {rule.name: rule for rule in (MatchRule, RejectionRule, BlockRule, TypicalRule)}
)


def create_acceptance_rule(name: str, **options: object) -> AcceptanceRule:
    """The rule called `name`. Raises UsageError for a name or an option that does not exist."""
    return ACCEPTANCE_RULES.create(name, options)


__all__ = [
    "ACCEPTANCE_RULES",
    "AcceptanceRule",
    "BlockRule",
    "Law",
    "MatchRule",
    "NonFiniteLogitsError",
    "Outcome",
    "RejectionRule",
    "Sampler",
    "TypicalRule",
    "Verification",
    "check_parents",
    "create_acceptance_rule",
    "without",
]
