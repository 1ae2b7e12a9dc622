"""How a user asks for speculation: which proposer, and how many draft tokens for each step."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Self, TypeAlias

from paceline.acceptance import AcceptanceRule, MatchRule, TypicalRule, create_acceptance_rule
from paceline.checks import check_flag
from paceline.controller import OFF, Controller, create_controller
from paceline.errors import UsageError
from paceline.proposers import PROPOSERS, Proposer, create_proposer

DEFAULT_NUM_SPECULATIVE_TOKENS = 4
MAX_SPECULATIVE_TOKENS = 15  # with the token that they follow, the 16 rows that one pass over the weights serves

Speculating: TypeAlias = tuple[Controller, list[Proposer], AcceptanceRule]
"""A controller, the proposers that it plans for, and the rule that judges them."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """`proposer`: "off" or a registered proposer. `options` go to the proposer. Raises UsageError for what is unknown.

    `rule`: which draft tokens stand. Under "match", the default, the text is the same whatever is chosen here; only its
    speed changes. "rejection" and "block" keep the distribution of the text, not the text. "typical" keeps neither, and
    needs `allow_lossy`.
    """

    proposer: str = OFF
    num_speculative_tokens: int = DEFAULT_NUM_SPECULATIVE_TOKENS
    options: Mapping[str, Any] = field(default_factory=dict)
    rule: str = MatchRule.name
    allow_lossy: bool = False

    def __post_init__(self) -> None:
        number = self.num_speculative_tokens
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_SPECULATIVE_TOKENS:
            raise UsageError(
                f"num_speculative_tokens is {number!r}; expected an integer from 1 to {MAX_SPECULATIVE_TOKENS}, "
                f"or the proposer {OFF!r}"
            )
        if not isinstance(self.proposer, str) or not isinstance(self.options, Mapping):
            raise UsageError(
                f"speculation has proposer {self.proposer!r} and options {self.options!r}; "
                "expected a name and a mapping"
            )
        if self.proposer == OFF:
            if self.options:
                raise UsageError(f"the proposer {OFF!r} has no options; got {', '.join(map(repr, self.options))}")
        elif self.proposer not in PROPOSERS:
            names = ", ".join([OFF, *PROPOSERS])
            raise UsageError(f"unknown proposer {self.proposer!r}; choose from {names}")

    @classmethod
    def of(cls, value: "Speculation | Mapping[str, Any] | str | None") -> Self:
        """From what `LLM` accepts: None, a proposer's name, a mapping of this class's fields, or an instance."""
        if value is None:
            return cls()
        if isinstance(value, str):
            return cls(proposer=value)
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise UsageError(f"speculation is {value!r}; expected None, a proposer's name, a mapping or Speculation")
        known = [f.name for f in fields(cls)]
        for key in value:
            if key not in known:
                close = get_close_matches(str(key), known, n=1)
                raise UsageError(f"speculation has no field {key!r}; {_hint(close, known)}")
        return cls(**value)

    @property
    def max_draft_tokens(self) -> int:
        """The most that a sequence drafts in a step: a request may ask for more than `num_speculative_tokens`."""
        return 0 if self.proposer == OFF else MAX_SPECULATIVE_TOKENS

    def create(self) -> Speculating:
        """Raises UsageError for a rule or an option of the proposer that does not exist."""
        rule = self._create_rule()
        if self.proposer == OFF:
            return create_controller(OFF), [], rule
        proposer = create_proposer(self.proposer, **self.options)
        controller = create_controller(
            "fixed", proposer=self.proposer, num_speculative_tokens=self.num_speculative_tokens
        )
        return controller, [proposer], rule

    def _create_rule(self) -> AcceptanceRule:
        check_flag("allow_lossy", self.allow_lossy)
        is_lossy = self.rule == TypicalRule.name
        if self.allow_lossy and not is_lossy:
            raise UsageError(f"allow_lossy is True, and the rule {self.rule!r} loses nothing; leave it out")
        return create_acceptance_rule(self.rule, **({"allow_lossy": self.allow_lossy} if is_lossy else {}))


def _hint(close: list[str], known: list[str]) -> str:
    return f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known)}"
