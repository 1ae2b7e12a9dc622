"""Reference-counted pages for the sequences of one model. Moves keys and values only through its store's two copies."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from paceline.cache.base import IntegrityError, OutOfPagesError, SequenceCache


class PageStore(Protocol):
    """Whoever holds the keys and values; every runtime does (see `paceline.runtime.base.Runtime`)."""

    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None: ...

    def copy_page(self, source: int, destination: int) -> None: ...


@dataclass(slots=True)
class _Entry:
    """Pages and ranges of one sequence.

    [0, length)                        committed
    [length, length + num_reserved)    rows of the next segment; in pages that only this sequence owns
    [.., len(pages) * page_size)       free
    """

    pages: tuple[int, ...] = field(default=())
    length: int = 0
    num_reserved: int = 0


class PagedCache(SequenceCache):
    """Pages are handed out from a stack of free ones, so equal verbs give equal pages.

    Sharing: a fork shares the parent's full pages. Nobody writes behind `length`, so a shared page is only at risk
    after a truncation has put its end of committed slots inside it; `reserve` gives the sequence its own copy then.
    """

    def __init__(self, store: PageStore, num_pages: int, page_size: int) -> None:
        if num_pages < 1 or page_size < 1:
            raise ValueError(f"a cache of {num_pages} pages of {page_size} slots; expected at least 1 of each")
        self._store = store
        self._page_size = page_size
        self._free = list(range(num_pages - 1, -1, -1))
        self._counts = [0] * num_pages
        self._entries: dict[int, _Entry] = {}

    @property
    def page_size(self) -> int:
        return self._page_size

    @property
    def num_free_pages(self) -> int:
        return len(self._free)

    def length(self, sequence: int) -> int:
        entry = self._entries.get(sequence)
        return 0 if entry is None else entry.length

    def pages(self, sequence: int) -> tuple[int, ...]:
        return self._entries[sequence].pages

    def reserve(self, sequence: int, num_rows: int) -> None:
        if num_rows < 0:
            raise ValueError(f"cannot reserve {num_rows} rows")
        entry = self._entries.get(sequence) or _Entry()
        num_new = max(0, self._num_pages_for(entry.length + num_rows) - len(entry.pages))
        shared = self._shared_boundary_page(entry) if num_rows else None
        if num_new or shared is not None:
            self._grow(entry, num_new, shared)
        entry.num_reserved = num_rows
        self._entries[sequence] = entry

    def _grow(self, entry: _Entry, num_new: int, shared: int | None) -> None:
        """Add `num_new` pages, and put a copy of the page `shared`, at the entry's boundary, into its place."""
        fresh = self._peek(num_new + (shared is not None))
        if shared is not None:
            self._store.copy_page(shared, fresh[-1])
        self._take(fresh)
        if shared is not None:
            boundary = entry.length // self._page_size
            entry.pages = (*entry.pages[:boundary], fresh.pop(), *entry.pages[boundary + 1 :])
            self._drop((shared,))
        entry.pages += tuple(fresh)

    def commit(self, sequence: int, path: Sequence[int]) -> None:
        entry = self._entries[sequence]
        _check_path(path, entry.num_reserved)
        moves = [(entry.length + row, entry.length + i) for i, row in enumerate(path) if row != i]
        if moves:
            self._store.copy_slots(entry.pages, moves)
        entry.length += len(path)
        entry.num_reserved = 0

    def truncate(self, sequence: int, length: int) -> None:
        entry = self._entries[sequence]
        if not 0 <= length <= entry.length:
            raise ValueError(f"cannot truncate a sequence of {entry.length} positions to {length}")
        num_kept = self._num_pages_for(length)
        dropped = entry.pages[num_kept:]
        entry.length, entry.num_reserved = length, 0
        entry.pages = entry.pages[:num_kept]
        self._drop(dropped)

    def fork(self, parent: int, child: int) -> None:
        if child in self._entries:
            raise ValueError(f"sequence {child} exists already")
        entry = self._entries[parent]
        num_full, num_partial = divmod(entry.length, self._page_size)
        fresh = self._peek(1 if num_partial else 0)
        if fresh:
            self._store.copy_page(entry.pages[num_full], fresh[0])
        self._take(fresh)
        shared = entry.pages[:num_full]
        for page in shared:
            self._counts[page] += 1
        self._entries[child] = _Entry(pages=(*shared, *fresh), length=entry.length)

    def release(self, sequence: int) -> None:
        entry = self._entries.pop(sequence, None)
        if entry is not None:
            self._drop(entry.pages)

    def repair(self, sequences: Collection[int]) -> None:
        """After a verb was interrupted: keep what `sequences` hold, and count every other page as free again."""
        self._entries = {sequence: entry for sequence, entry in self._entries.items() if sequence in sequences}
        owners = Counter(page for entry in self._entries.values() for page in entry.pages)
        self._counts = [owners[page] for page in range(len(self._counts))]
        self._free = [page for page in reversed(range(len(self._counts))) if not owners[page]]

    def check_integrity(self) -> None:
        owners = Counter(page for entry in self._entries.values() for page in entry.pages)
        for page, count in enumerate(self._counts):
            if owners[page] != count:
                raise IntegrityError(f"page {page} has {owners[page]} owners and a count of {count}")
        unowned = [page for page, count in enumerate(self._counts) if count == 0]
        if sorted(self._free) != unowned:
            raise IntegrityError(f"free pages are {sorted(self._free)}, pages without an owner {unowned}")
        for sequence, entry in self._entries.items():
            self._check_entry(sequence, entry)

    def _check_entry(self, sequence: int, entry: _Entry) -> None:
        if len(set(entry.pages)) != len(entry.pages):
            raise IntegrityError(f"sequence {sequence} holds a page twice: {entry.pages}")
        end = entry.length + entry.num_reserved
        if entry.length < 0 or end > len(entry.pages) * self._page_size:
            raise IntegrityError(f"sequence {sequence} has slots to {end} in {len(entry.pages)} pages")
        if entry.num_reserved:
            for page in entry.pages[entry.length // self._page_size :]:
                if self._counts[page] != 1:
                    raise IntegrityError(f"sequence {sequence} may write to page {page}, which others share")

    def _num_pages_for(self, num_slots: int) -> int:
        return -(-num_slots // self._page_size)

    def _shared_boundary_page(self, entry: _Entry) -> int | None:
        """The page in which committed slots end and writable ones begin, if another sequence has it too."""
        boundary, num_partial = divmod(entry.length, self._page_size)
        if num_partial and self._counts[entry.pages[boundary]] > 1:
            return entry.pages[boundary]
        return None

    def _peek(self, num: int) -> list[int]:
        """The next `num` free pages, still free, so that a copy that fails loses none."""
        if num > len(self._free):
            raise OutOfPagesError(f"{num} pages are needed and {len(self._free)} are free")
        return self._free[len(self._free) - num :][::-1]

    def _take(self, pages: Sequence[int]) -> None:
        del self._free[len(self._free) - len(pages) :]
        for page in pages:
            self._counts[page] = 1

    def _drop(self, pages: Sequence[int]) -> None:
        for page in reversed(pages):
            self._counts[page] -= 1
            if self._counts[page] == 0:
                self._free.append(page)


def _check_path(path: Sequence[int], num_reserved: int) -> None:
    previous = -1
    for row in path:
        if row <= previous:
            raise ValueError(f"path {list(path)} does not ascend")
        previous = row
    if len(path) and path[0] != 0:
        raise ValueError(f"path {list(path)} does not start at row 0")
    if previous >= num_reserved:
        raise ValueError(f"path {list(path)} reaches past the {num_reserved} reserved rows")
