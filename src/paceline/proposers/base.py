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

from paceline.cache.base import PageStore, SequenceCache
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


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """What a proposer's cache is made of: `num_pages` pages of `page_size` slots, their keys and values in `store`.

    `max_length` is the number of positions that the proposer's model can hold of one sequence; the pages suffice for
    one such sequence.
    """

    store: PageStore
    num_pages: int
    page_size: int
    max_length: int

    def __post_init__(self) -> None:
        if not 1 <= self.max_length <= self.num_pages * self.page_size:
            raise ValueError(
                f"a context of {self.max_length} positions in {self.num_pages} pages of {self.page_size}; "
                "expected at least 1 and no more than the pages hold"
            )


class CachingProposer(Proposer):
    """A proposer with `capabilities.has_cache`: a model of its own, whose pages the engine manages beside the target's.

    The engine makes the cache that `cache_spec` describes and hands it over with `attach`, before anything else. It
    begins, forks and releases sequences there, and commits draft rows; the proposer never does. A sequence may begin
    with positions that are there already: `cache.length(sequence)` says how far this model has seen it.

    Within `propose`, for every sequence that gets a draft, the proposer

    1. catches up from `cache.length(sequence)` towards the newest token. What its runtime cannot do in one forward it
       runs in chunks, and commits each: these are committed tokens.
    2. leaves one open reservation: the run that ends with the newest token, then rows of its draft tokens in their
       order. Rows at the end may be missing; the last token of a draft never needs one.

    At the step's commit the rows of the run and of the accepted tokens become real, so `cache.length(sequence)` is at
    most the number of known tokens less one whenever `propose` is called. A draft that would need positions past
    `max_length` is shorter or empty, and so is one for which `reserve` raises OutOfPagesError.
    """

    @property
    @abstractmethod
    def cache_spec(self) -> CacheSpec: ...

    @abstractmethod
    def attach(self, cache: SequenceCache) -> None:
        """Use `cache` from now on. Raises ValueError if it does not fit `cache_spec`."""
