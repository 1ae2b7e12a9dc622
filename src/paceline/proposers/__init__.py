"""Proposers: cheap guesses at the next tokens. `base` holds the contract; a user chooses one by its name here."""

from paceline.proposers.base import (
    Ask,
    CacheSpec,
    CachingProposer,
    Capabilities,
    Draft,
    DraftDistribution,
    Evidence,
    Proposer,
)
from paceline.proposers.ngram import NgramProposer
from paceline.registry import Registry

PROPOSERS: Registry[Proposer] = Registry("proposer", {NgramProposer.name: NgramProposer})


def create_proposer(name: str, **options: object) -> Proposer:
    """The proposer called `name`. Raises UsageError for a name, an option or a value that does not exist."""
    return PROPOSERS.create(name, options)


__all__ = [
    "PROPOSERS",
    "Ask",
    "CacheSpec",
    "CachingProposer",
    "Capabilities",
    "Draft",
    "DraftDistribution",
    "Evidence",
    "NgramProposer",
    "Proposer",
    "create_proposer",
]
