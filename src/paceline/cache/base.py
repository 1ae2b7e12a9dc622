"""The contract of a sequence cache: the verbs by which keys and values of one model become real or vanish.

The same verbs serve the target and every proposer that keeps a cache. A cache knows slots, pages and lengths, and the
tokens that its committed positions stand for where it may reuse them; it knows no text, and it never decides what is
accepted.

For every sequence its slots form three half-open ranges:

    [0, length)           committed: stand for tokens that were really emitted or prompted
    [length, capacity)    drafted or free: written by forwards, worthless until a commit, overwritten at will
    capacity              a whole number of pages, at least what `reserve` was asked for

`length` is the number of cached positions. The newest token of a sequence is not cached until the forward that it
rides in has been committed: for n known tokens, `length == n - 1` between steps.

Reuse: `publish` offers the committed positions of a sequence to later ones, and `adopt` begins a sequence with those
that stand for the same tokens behind the same tokens, in the same namespace. What was published is never written
again; it stays, unreferenced, until its page is needed. Nothing but committed positions is ever published, so a
rejected row cannot be reused.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Protocol


class OutOfPagesError(Exception):
    """`reserve` or `fork` found too few free pages. Nothing was changed; the caller schedules less or preempts."""


class IntegrityError(Exception):
    """`check_integrity` found a page owned twice, lost, or counted wrongly: a defect, never the user's doing."""


class PageStore(Protocol):
    """Whoever holds the keys and values; every runtime does (see `paceline.runtime.base.Runtime`)."""

    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None: ...

    def copy_page(self, source: int, destination: int) -> None: ...


class SequenceCache(ABC):
    """Pages of one model, by sequence. Not thread-safe."""

    @property
    @abstractmethod
    def page_size(self) -> int: ...

    @property
    @abstractmethod
    def num_free_pages(self) -> int:
        """Pages that a sequence could get: those without content, and published ones that no sequence holds."""

    @property
    @abstractmethod
    def sequences(self) -> Collection[int]:
        """The sequences that are known; valid until the next verb."""

    @abstractmethod
    def length(self, sequence: int) -> int:
        """Committed positions of `sequence`; 0 for one that is not known."""

    @abstractmethod
    def pages(self, sequence: int) -> tuple[int, ...]:
        """Pages of `sequence` in slot order; valid until the next verb on it."""

    @abstractmethod
    def num_reserved(self, sequence: int) -> int:
        """Rows of the last `reserve` that no commit has answered; 0 for a sequence that is not known."""

    @abstractmethod
    def num_spare_slots(self, sequence: int) -> int:
        """Rows that `reserve` could make writable without a page more; 0 for a sequence that is not known."""

    @abstractmethod
    def adopt(self, sequence: int, tokens: Sequence[int], namespace: str) -> int:
        """Begin `sequence` with the longest published prefix of `tokens` in `namespace`; returns its length.

        Full pages are shared. Of a published page that agrees only at its beginning, that beginning is copied, where a
        page is free. Raises ValueError if the sequence exists.
        """

    @abstractmethod
    def publish(self, sequence: int, tokens: Sequence[int]) -> None:
        """Offer the full pages of committed positions for reuse; `tokens[i]` is the token of position i.

        Where another sequence has published the same already, its page takes the place of this one's, which is given
        back. Does nothing for a sequence that did not begin with `adopt`.
        """

    @abstractmethod
    def reserve(self, sequence: int, num_rows: int) -> None:
        """Make slots `[length, length + num_rows)` writable. Creates the sequence if need be.

        Raises OutOfPagesError and changes nothing when pages run out.
        """

    @abstractmethod
    def commit(self, sequence: int, path: Sequence[int]) -> None:
        """Make the rows of `path` real: row indices of the last segment, from row 0, each an ancestor of the next.

        Their keys and values end up in slots `[length, length + len(path))`, and `length` grows by `len(path)`. A chain
        moves nothing. Rows not on the path are gone. Raises ValueError for a path that does not ascend or that reaches
        past the reserved slots.
        """

    @abstractmethod
    def truncate(self, sequence: int, length: int) -> None:
        """Forget all positions at or past `length` and give back the pages that no longer hold any."""

    @abstractmethod
    def fork(self, parent: int, child: int) -> None:
        """Make `child` a new sequence with the parent's committed positions (n > 1). Full pages are shared.

        Raises OutOfPagesError and changes nothing where a half full page has no room for its copy.
        """

    @abstractmethod
    def release(self, sequence: int) -> None:
        """Forget `sequence` and give back its pages, published ones as the most recently used.

        Releasing an unknown sequence does nothing.
        """

    @abstractmethod
    def repair(self, sequences: Collection[int]) -> None:
        """After a verb was interrupted: keep what `sequences` hold, and make every page whole again.

        Open reservations are closed; what was published and is whole stays published.
        """

    @abstractmethod
    def check_integrity(self) -> None:
        """Raise IntegrityError unless every page is free, reusable or owned exactly as often as its count says."""
