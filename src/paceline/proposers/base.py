"""The contract of a proposer: a cheap guess at the next tokens.

A proposer sees committed tokens and the evidence that it declared, never the target's cache, and it never adapts how
much it proposes: how many tokens are asked for is the controller's decision. All its state is scoped by namespace, so
that one tenant's text cannot surface in another's drafts. A wrong guess costs time, never correctness.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from paceline.value import value


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a proposer does and needs.

    `is_sampled`: its tokens are drawn from a distribution q that it hands over; otherwise they are deterministic and q
    is a point mass. `can_tree`: drafts may branch. `has_cache`: it keeps keys and values of its own, behind the cache
    verbs of `paceline.cache.base`. `hidden_layers`: target layers whose hidden states it must be given. `top_k`: how
    many of the verification logits' highest entries it must be given.
    """

    is_sampled: bool = False
    can_tree: bool = False
    has_cache: bool = False
    hidden_layers: tuple[int, ...] = ()
    top_k: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the verification pass showed about newly committed tokens, one row each, as far as declared.

    `hidden` is float32 `[tokens, layers, width]`; `top_ids` int32 and `top_logits` float32 `[tokens, top_k]`.
    """

    hidden: NDArray[np.float32] | None = None
    top_ids: NDArray[np.int32] | None = None
    top_logits: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class DraftDistribution:
    """The exact distribution that each draft token was drawn from: float64 `[tokens, vocabulary]`, rows sum to 1.

    Kept until acceptance, unrounded: a q stored more coarsely than it was drawn from is a different q.
    """

    q: NDArray[np.float64]


@value
class Draft:
    """A proposer's guess for one sequence; no tokens means that it has nothing to say.

    `parents[i]` is the index of token i's parent among the draft tokens, or -1 for the committed token that the draft
    hangs from; empty for a chain. `q` is given exactly when the proposer is sampled. `match_length` and `margins` are
    what it knows for estimating survival: how many tokens of context it matched, and for each token the distance
    between its two best logits.
    """

    sequence: int
    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    q: DraftDistribution | None = None
    match_length: int | None = None
    margins: tuple[float, ...] = ()
    proposer: str = ""
    cost_ns: int = 0


@value
class Ask:
    """A request for at most `num_tokens` draft tokens for `sequence`."""

    sequence: int
    num_tokens: int


class Proposer(ABC):
    """Life of a sequence: `start`, then `extend` and `propose` in any number and order, then `finish`.

    A proposer with `hidden_layers` documents how it resumes after a prefix hit or idle steps.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    @abstractmethod
    def start(self, sequence: int, context: Sequence[int], namespace: str) -> None:
        """Begin `sequence` with its committed tokens. Raises ValueError if it was started and not finished."""

    @abstractmethod
    def extend(self, sequence: int, tokens: Sequence[int], evidence: Evidence | None = None) -> None:
        """Add newly committed tokens; never called with a token that was rejected or trimmed."""

    @abstractmethod
    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        """One draft for each ask, in order. Fewer tokens than asked, or none, is fine; more is a defect.

        Changes nothing that a later call could see: asking twice gives the same drafts.
        """

    @abstractmethod
    def finish(self, sequence: int) -> None:
        """Forget `sequence`. Finishing an unknown sequence does nothing."""

    @abstractmethod
    def reset(self) -> None:
        """Forget everything, across sequences and namespaces."""
