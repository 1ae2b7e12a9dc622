"""What a paged cache knows of one sequence, and what must be true of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paceline.cache.base import IntegrityError
from paceline.cache.prefix import ROOT_PAGE, PrefixIndex


@dataclass(slots=True)
class Entry:
    """Pages and ranges of one sequence.

    [0, num_published * page_size)     committed, and published: never written again, whoever holds them
    [.., length)                       committed
    [length, length + num_reserved)    rows of the next segment; in pages that only this sequence owns
    [.., len(pages) * page_size)       free

    `namespace` is None for a sequence that publishes nothing (any more).
    """

    pages: tuple[int, ...] = field(default=())
    length: int = 0
    num_reserved: int = 0
    namespace: str | None = None
    num_published: int = 0


def is_private(page: int, counts: Sequence[int] | Mapping[int, int], index: PrefixIndex) -> bool:
    """Whether the one sequence that holds `page` may write to it."""
    return counts[page] == 1 and page not in index


def check_path(path: Sequence[int], num_reserved: int) -> None:
    """Raise ValueError for a path that `SequenceCache.commit` refuses."""
    previous = -1
    for row in path:
        if row <= previous:
            raise ValueError(f"path {list(path)} does not ascend")
        previous = row
    if len(path) and path[0] != 0:
        raise ValueError(f"path {list(path)} does not start at row 0")
    if previous >= num_reserved:
        raise ValueError(f"path {list(path)} reaches past the {num_reserved} reserved rows")


def check_entry(sequence: int, entry: Entry, page_size: int, counts: Sequence[int], index: PrefixIndex) -> None:
    """Raise IntegrityError for ranges that contradict each other or pages that this sequence must not have."""
    if len(set(entry.pages)) != len(entry.pages):
        raise IntegrityError(f"sequence {sequence} holds a page twice: {entry.pages}")
    end = entry.length + entry.num_reserved
    if entry.length < 0 or entry.num_reserved < 0 or end > len(entry.pages) * page_size:
        raise IntegrityError(f"sequence {sequence} has slots {entry.length} to {end} in {len(entry.pages)} pages")
    num_full = entry.length // page_size
    if not 0 <= entry.num_published <= num_full:
        raise IntegrityError(f"sequence {sequence} of {num_full} full pages published {entry.num_published}")
    first_writable = num_full if entry.num_reserved else -(-entry.length // page_size)
    for page in entry.pages[first_writable:]:
        if not is_private(page, counts, index):
            raise IntegrityError(f"sequence {sequence} may write to page {page}, which others share or may reuse")
    for i, page in enumerate(entry.pages):
        is_published = page in index
        if is_published and index.parent(page) != (entry.pages[i - 1] if i else ROOT_PAGE):
            raise IntegrityError(f"sequence {sequence} holds page {page} and not the one published before it")
        if i < entry.num_published and not is_published:
            raise IntegrityError(f"sequence {sequence} takes page {page} for published")
