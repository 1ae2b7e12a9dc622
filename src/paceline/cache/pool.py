"""The pages of one cache: free, reusable, or held, with reference counts and least recently used eviction."""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from paceline.cache.base import IntegrityError, OutOfPagesError
from paceline.cache.prefix import ROOT_PAGE, PrefixIndex


class PagePool:
    """Every page is in one of three states:

    free        without content
    reusable    published and held by nobody, in the order in which they were given back
    held        by as many sequences as its count says, published or not

    Pages are handed out from a stack of free ones, so equal verbs give equal pages; then the reusable ones go, least
    recently used first. The page before a published one is always given back after it: whoever holds a page holds the
    one before it, and `drop` goes from the last page to the first. So eviction meets leaves only.
    """

    def __init__(self, num_pages: int, index: PrefixIndex) -> None:
        self._index = index
        self._free = list(range(num_pages - 1, -1, -1))
        self._reusable: dict[int, None] = {}
        self.counts = [0] * num_pages

    @property
    def num_available(self) -> int:
        return len(self._free) + len(self._reusable)

    def peek(self, num: int, keep: Collection[int] = ()) -> list[int]:
        """The next `num` free pages, still free, so that a copy that fails loses none.

        Evicts what is needed for that, but none of `keep`, which holds the parents of its pages too. An evicted page
        has left the index before anybody can write to it. Raises OutOfPagesError and changes nothing.
        """
        num_lacking = num - len(self._free)
        if num_lacking > 0:
            self._evict(num_lacking, num, frozenset(keep))
        return self._free[len(self._free) - num :][::-1]

    def _evict(self, num_lacking: int, num: int, keep: frozenset[int]) -> None:
        pages = list(islice((page for page in self._reusable if page not in keep), num_lacking))
        if len(pages) < num_lacking:
            raise OutOfPagesError(f"{num} pages are needed and {len(self._free) + len(pages)} are free")
        for page in pages:
            self._index.remove(page)
            del self._reusable[page]
            self._free.append(page)

    def take(self, pages: Sequence[int]) -> None:
        """Hold the pages that the last `peek` returned."""
        del self._free[len(self._free) - len(pages) :]
        for page in pages:
            self.counts[page] = 1

    def hold(self, pages: Sequence[int]) -> None:
        """Hold pages that are held or reusable once more, each after the one before it."""
        for page in pages:
            if not self.counts[page]:
                del self._reusable[page]
            self.counts[page] += 1

    def drop(self, pages: Sequence[int]) -> None:
        """Give back `pages` of one sequence, in slot order."""
        for page in reversed(pages):
            self.counts[page] -= 1
            if self.counts[page]:
                continue
            if page in self._index:
                self._reusable[page] = None
            else:
                self._free.append(page)

    def touch(self, page: int) -> None:
        """Make a published page the most recently used. The pages before it are held."""
        if page in self._reusable:
            del self._reusable[page]
            self._reusable[page] = None

    def repair(self, owners: Mapping[int, int]) -> None:
        """Count anew: `owners[page]` sequences hold a page, and what nobody holds is reusable or free."""
        num_pages = len(self.counts)
        self.counts = [owners.get(page, 0) for page in range(num_pages)]
        unowned = {page for page in self._index if not self.counts[page]}
        known = [page for page in self._reusable if page in unowned]
        # Interrupted givings back and takings leave out the first pages of a sequence, never the last.
        left_out = sorted(unowned.difference(known), key=lambda page: (-self._index.depth(page), page))
        self._reusable = dict.fromkeys((*known, *left_out))
        self._free = [page for page in reversed(range(num_pages)) if not self.counts[page] and page not in unowned]

    def check_integrity(self, owners: Mapping[int, int]) -> None:
        for page, count in enumerate(self.counts):
            if owners.get(page, 0) != count:
                raise IntegrityError(f"page {page} has {owners.get(page, 0)} owners and a count of {count}")
        unowned = [page for page, count in enumerate(self.counts) if not count]
        if sorted((*self._free, *self._reusable)) != unowned:
            raise IntegrityError(
                f"free pages are {sorted(self._free)}, reusable ones {sorted(self._reusable)}, "
                f"pages without an owner {unowned}"
            )
        for page in unowned:
            if (page in self._reusable) != (page in self._index):
                raise IntegrityError(f"page {page} is free and published, or reusable and not published")
        self._check_order()

    def _check_order(self) -> None:
        """The page before a published one is held or will be evicted after it."""
        rank = {page: i for i, page in enumerate(self._reusable)}
        for page in self._index:
            parent = self._index.parent(page)
            if parent != ROOT_PAGE and parent in rank and rank.get(page, len(rank)) > rank[parent]:
                raise IntegrityError(f"page {parent} would be evicted before page {page} behind it")
