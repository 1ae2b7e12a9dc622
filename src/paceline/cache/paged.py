"""Reference-counted pages for the sequences of one model. Moves keys and values only through its store's two copies."""

from collections import Counter
from collections.abc import Collection, Sequence

from paceline.cache.base import OutOfPagesError, PageStore, SequenceCache
from paceline.cache.entry import Entry, check_entry, check_path, is_private
from paceline.cache.pool import PagePool
from paceline.cache.prefix import ROOT_PAGE, Digest, Match, PrefixIndex, short_digest


class PagedCache(SequenceCache):
    """`digest` makes the keys of published pages (see `paceline.cache.prefix`).

    Sharing: a fork shares the parent's full pages, `adopt` published ones. Nobody writes behind `length`, so such a
    page is only at risk after a truncation has put its end of committed slots inside it; `reserve` gives the sequence
    its own copy then. Whoever holds a published page holds the published page before it.
    """

    def __init__(self, store: PageStore, num_pages: int, page_size: int, *, digest: Digest = short_digest) -> None:
        if num_pages < 1 or page_size < 1:
            raise ValueError(f"a cache of {num_pages} pages of {page_size} slots; expected at least 1 of each")
        self._store = store
        self._page_size = page_size
        self._index = PrefixIndex(page_size, digest)
        self._pool = PagePool(num_pages, self._index)
        self._entries: dict[int, Entry] = {}

    @property
    def page_size(self) -> int:
        return self._page_size

    @property
    def num_free_pages(self) -> int:
        return self._pool.num_available

    @property
    def sequences(self) -> Collection[int]:
        return self._entries.keys()

    def length(self, sequence: int) -> int:
        entry = self._entries.get(sequence)
        return 0 if entry is None else entry.length

    def pages(self, sequence: int) -> tuple[int, ...]:
        return self._entries[sequence].pages

    def num_reserved(self, sequence: int) -> int:
        entry = self._entries.get(sequence)
        return 0 if entry is None else entry.num_reserved

    def num_spare_slots(self, sequence: int) -> int:
        entry = self._entries.get(sequence)
        if entry is None or self._protected_boundary_page(entry) is not None:
            return 0
        return len(entry.pages) * self._page_size - entry.length

    def adopt(self, sequence: int, tokens: Sequence[int], namespace: str) -> int:
        self._check_is_new(sequence)
        match = self._index.find(tokens, namespace)
        fresh = self._copy_beginning(match)
        self._pool.take(fresh)
        self._pool.hold(match.pages)
        num_full = len(match.pages)
        length = num_full * self._page_size + (match.num_partial if fresh else 0)
        pages = (*match.pages, *fresh)
        self._entries[sequence] = Entry(pages, length, namespace=namespace, num_published=num_full)
        return length

    def _copy_beginning(self, match: Match) -> list[int]:
        """A page with a copy of the one that agrees at its beginning, not taken yet; none if there is no room."""
        if match.partial is None:
            return []
        try:
            fresh = self._pool.peek(1, keep=(*match.pages, match.partial))
        except OutOfPagesError:
            return []
        self._store.copy_page(match.partial, fresh[0])
        self._pool.touch(match.partial)
        return fresh

    def publish(self, sequence: int, tokens: Sequence[int]) -> None:
        entry = self._entries.get(sequence)
        if entry is None or entry.namespace is None:
            return
        num_full = entry.length // self._page_size
        if num_full > entry.num_published:
            if len(tokens) < num_full * self._page_size:
                raise ValueError(f"{len(tokens)} tokens for {entry.length} committed positions")
            for i in range(entry.num_published, num_full):
                if not self._publish_page(entry, i, tokens):
                    return

    def _publish_page(self, entry: Entry, i: int, tokens: Sequence[int]) -> bool:
        """Publish page i of a sequence whose earlier pages are published; whether that was possible."""
        assert entry.namespace is not None
        page, size = entry.pages[i], self._page_size
        if self._pool.counts[page] > 1:
            self._align_forks(entry, i)
        parent = entry.pages[i - 1] if i else ROOT_PAGE
        known = self._index.add(parent, entry.namespace, tuple(tokens[i * size : (i + 1) * size]), page)
        if known is None:
            entry.namespace = None  # what lies behind a page that cannot be found cannot be found either
            return False
        if known != page:
            self._replace(entry, i, (known,))
        entry.num_published = i + 1
        return True

    def _align_forks(self, entry: Entry, i: int) -> None:
        """Give the forks that share page i of `entry` the published pages before it too: they stand for the same."""
        for other in self._entries.values():
            if other.pages[i : i + 1] == entry.pages[i : i + 1] and other.pages[:i] != entry.pages[:i]:
                self._replace(other, 0, entry.pages[:i])

    def _replace(self, entry: Entry, begin: int, pages: tuple[int, ...]) -> None:
        """Hold `pages` in place of those at `begin`."""
        end = begin + len(pages)
        dropped = entry.pages[begin:end]
        self._pool.hold(pages)
        entry.pages = (*entry.pages[:begin], *pages, *entry.pages[end:])
        self._pool.drop(dropped)

    def reserve(self, sequence: int, num_rows: int) -> None:
        if num_rows < 0:
            raise ValueError(f"cannot reserve {num_rows} rows")
        entry = self._entries.get(sequence) or Entry()
        num_new = max(0, self._num_pages_for(entry.length + num_rows) - len(entry.pages))
        protected = self._protected_boundary_page(entry) if num_rows else None
        if num_new or protected is not None:
            self._grow(entry, num_new, protected)
        entry.num_reserved = num_rows
        self._entries[sequence] = entry

    def _grow(self, entry: Entry, num_new: int, protected: int | None) -> None:
        """Add `num_new` pages, and put a copy of the page `protected`, at the entry's boundary, into its place."""
        fresh = self._pool.peek(num_new + (protected is not None))
        if protected is not None:
            self._store.copy_page(protected, fresh[-1])
        self._pool.take(fresh)
        if protected is not None:
            boundary = entry.length // self._page_size
            entry.pages = (*entry.pages[:boundary], fresh.pop(), *entry.pages[boundary + 1 :])
            self._pool.drop((protected,))
        entry.pages += tuple(fresh)

    def commit(self, sequence: int, path: Sequence[int]) -> None:
        entry = self._entries[sequence]
        check_path(path, entry.num_reserved)
        moves = [(entry.length + row, entry.length + i) for i, row in enumerate(path) if row != i]
        if moves:
            self._store.copy_slots(entry.pages, moves)
        entry.num_reserved = 0  # first: an interrupt behind it commits nothing, and leaves no row past the pages
        entry.length += len(path)

    def truncate(self, sequence: int, length: int) -> None:
        entry = self._entries[sequence]
        if not 0 <= length <= entry.length:
            raise ValueError(f"cannot truncate a sequence of {entry.length} positions to {length}")
        num_kept = self._num_pages_for(length)
        dropped = entry.pages[num_kept:]
        entry.num_reserved = 0
        entry.num_published = min(entry.num_published, length // self._page_size)
        entry.length = length
        entry.pages = entry.pages[:num_kept]
        self._pool.drop(dropped)

    def fork(self, parent: int, child: int) -> None:
        self._check_is_new(child)
        entry = self._entries[parent]
        num_full, num_partial = divmod(entry.length, self._page_size)
        fresh = self._pool.peek(1 if num_partial else 0)
        if fresh:
            self._store.copy_page(entry.pages[num_full], fresh[0])
        self._pool.take(fresh)
        shared = entry.pages[:num_full]
        self._pool.hold(shared)
        self._entries[child] = Entry((*shared, *fresh), entry.length, 0, entry.namespace, entry.num_published)

    def release(self, sequence: int) -> None:
        entry = self._entries.pop(sequence, None)
        if entry is not None:
            self._pool.drop(entry.pages)

    def repair(self, sequences: Collection[int]) -> None:
        self._entries = {sequence: entry for sequence, entry in self._entries.items() if sequence in sequences}
        self._index.repair()
        owners = self._owners()
        for entry in self._entries.values():
            self._repair_entry(entry, owners)
        self._pool.repair(self._owners())

    def _repair_entry(self, entry: Entry, owners: Counter[int]) -> None:
        """Close the reservation, let go of what a truncation was about to, and count what is published."""
        entry.num_reserved = 0
        num_kept = self._num_pages_for(entry.length)
        while num_kept < len(entry.pages) and is_private(entry.pages[num_kept], owners, self._index):
            num_kept += 1
        entry.pages = entry.pages[:num_kept]
        num_full, num_published = entry.length // self._page_size, 0
        while num_published < num_full and entry.pages[num_published] in self._index:
            num_published += 1
        entry.num_published = num_published

    def check_integrity(self) -> None:
        self._index.check_integrity()
        self._pool.check_integrity(self._owners())
        for sequence, entry in self._entries.items():
            check_entry(sequence, entry, self._page_size, self._pool.counts, self._index)

    def _owners(self) -> Counter[int]:
        return Counter(page for entry in self._entries.values() for page in entry.pages)

    def _num_pages_for(self, num_slots: int) -> int:
        return -(-num_slots // self._page_size)

    def _protected_boundary_page(self, entry: Entry) -> int | None:
        """The page in which committed slots end and writable ones begin, if others have it too or may reuse it."""
        boundary, num_partial = divmod(entry.length, self._page_size)
        if num_partial and not is_private(entry.pages[boundary], self._pool.counts, self._index):
            return entry.pages[boundary]
        return None

    def _check_is_new(self, sequence: int) -> None:
        if sequence in self._entries:
            raise ValueError(f"sequence {sequence} exists already")
