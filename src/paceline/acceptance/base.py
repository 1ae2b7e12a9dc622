"""The contract of an acceptance rule: which draft tokens stand, and which token comes next.

Rules are pure. They see processed target distributions p, draft distributions q and draft tokens; no runtime, no cache,
no text. The functions that define a rule's law (`accept_probability`, `residual`) are the ones that its drawing path
calls, in float64, so that enumerating them tests the product.

A sampler turns one row of target logits into one token. The order of processing is fixed for every implementation:
penalties, bias, bans, minimum tokens and grammar mask; division by the temperature; min-p; top-k; top-p; then
`argmax(z + g)` with ties to the lowest id. At temperature 0 there is no noise g. Noise is keyed by (sample seed,
absolute position, token id, stream), so whatever is discarded costs no randomness.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from paceline.value import value

Law = NDArray[np.float64]  # [vocabulary], sums to 1


class NonFiniteLogitsError(ArithmeticError):
    """A row of target logits holds NaN or an infinity; no token may be drawn from it."""


class Sampler(Protocol):
    """Draws the target's token for one row, and knows what was emitted before it.

    `position` is the absolute position of the token to be drawn, `drafted` are the tokens of the row's path that are
    not committed yet: the draft tokens between the newest committed token and the row. A processor that depends on what
    was emitted sees the committed tokens and then these, so every row of a chain or a tree is drawn from as plain
    decoding would draw from it.
    """

    @property
    def seed(self) -> int:
        """The sample seed that keys all noise of this sequence (see `paceline.acceptance.noise`)."""
        ...

    def sample(self, logits: NDArray[np.float32], position: int, drafted: Sequence[int] = ()) -> int:
        """The token at `position`, from `[vocabulary]` logits. Raises NonFiniteLogitsError."""
        ...

    def law(self, logits: NDArray[np.float32], position: int, drafted: Sequence[int] = ()) -> Law:
        """The processed distribution p that `sample` draws from. Raises NonFiniteLogitsError."""
        ...

    def extend(self, tokens: Sequence[int]) -> None:
        """Committed tokens: they count from here on. Never called with one that was rejected or trimmed."""
        ...


@value
class Verification:
    """One sequence's draft beside the target's logits for it.

    Row 0 of `logits`, float32 `[1 + draft tokens, vocabulary]`, belongs to the newest committed token and row i + 1 to
    draft token i. `parents[i]` is the index among the draft tokens of token i's parent, or -1 for the newest committed
    token; a chain names its parents too. `position` is the absolute position of the token that row 0 decides. `q` is
    float64 `[draft tokens, vocabulary]`, None for a deterministic draft (a point mass). Row i is what token i was drawn
    from, given everything that was drawn before it: siblings in a tree stand in the order of drawing, and one that was
    drawn without replacement has the row that lacks those before it, renormalised (`paceline.acceptance.without`).
    """

    sequence: int
    logits: NDArray[np.float32]
    draft: tuple[int, ...]
    parents: tuple[int, ...]
    position: int
    sampler: Sampler
    q: NDArray[np.float64] | None = None


@value
class Outcome:
    """What stands. `path` holds the accepted rows from row 0, each the parent of the next; `tokens` are the tokens that
    those rows decided: the accepted draft tokens and then one of the target's own. `len(tokens) == len(path)`, except
    where there is an `error`, a sentence: then the last row of the path had logits that no token can be drawn from.
    """

    sequence: int
    path: tuple[int, ...]
    tokens: tuple[int, ...]
    error: str | None = None

    @property
    def num_accepted(self) -> int:
        """Draft tokens accepted."""
        return len(self.path) - 1


class AcceptanceRule(ABC):
    """`is_token_identical`: under the same seed the tokens are those of plain decoding, not only their distribution.
    `is_lossless`: their distribution is the target's; where it is not, every result is marked.
    """

    name: ClassVar[str]
    is_token_identical: ClassVar[bool]
    is_lossless: ClassVar[bool]

    @abstractmethod
    def accept_probability(self, p: Law, q: Law, token: int) -> float:
        """Probability that the draft token `token`, drawn from q, stands against p."""

    @abstractmethod
    def residual(self, p: Law, q: Law, token: int) -> Law:
        """The distribution of the emitted token given that `token` was rejected."""

    @abstractmethod
    def accept(self, verification: Verification) -> Outcome:
        """Decide one sequence's draft. Deterministic given the sampler's seed."""


def check_parents(parents: Sequence[int]) -> None:
    """Raise ValueError unless every parent precedes its child."""
    for child, parent in enumerate(parents):
        if not -1 <= parent < child:
            raise ValueError(f"draft token {child} names parent {parent}; expected -1 to {child - 1}")
