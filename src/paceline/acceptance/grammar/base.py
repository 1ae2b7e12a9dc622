"""The contract of a grammar: which tokens may come next, and where the text that it allows ends.

A grammar is compiled once for a vocabulary and makes a mask for every answer, each with a state of its own. A mask is a
`Mask` like others, computed along the draft: the row behind `drafted` sees the state that `extend(drafted)` would lead
to. Ends are decided here too:

- An end token, one of those that end this answer, is legal where the text may end, and nowhere else: before it, or, if
  it adds to the text itself, behind it. What follows an end token is not constrained: no text does.
- Where the text may end and nothing can follow, it is complete. The answer is over with that token; an end token need
  not come.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from paceline.acceptance.base import NonFiniteLogitsError
from paceline.acceptance.processors.base import Mask


class GrammarError(NonFiniteLogitsError):
    """A grammar reached a bound of its own and cannot tell what may come next. Requests beside it go on."""


class GrammarMask(Mask):
    """The state of one answer. `allowed` and `allows` raise GrammarError; `extend` does not, the next question does.

    No row behind a token that was illegal may be asked for: that raises RuntimeError.
    """

    @abstractmethod
    def num_until_complete(self, tokens: Sequence[int]) -> int | None:
        """Of `tokens`, which come next, how many there are up to the one that completes the text; None where none does,
        or an end token comes first. The last of them may be one that no row was asked behind.
        """


class Grammar(ABC):
    """Compiled, for one vocabulary. Safe to share between threads."""

    @property
    @abstractmethod
    def vocab_size(self) -> int: ...

    @abstractmethod
    def mask(self, end_ids: Collection[int]) -> GrammarMask:
        """The state of a new answer. `end_ids`: the tokens that end it."""
