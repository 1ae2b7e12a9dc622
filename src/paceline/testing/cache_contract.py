"""The contract of `SequenceCache`, checked beside a shadow that remembers what every slot should hold."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from paceline.cache.base import OutOfPagesError, PageStore, SequenceCache
from paceline.testing.ensure import ensure, ensure_raises

CacheFactory = Callable[[PageStore, int, int], SequenceCache]  # store, pages, page size


class SlotStore:
    """A page store whose slots hold plain numbers; 0 is a slot that was never written."""

    def __init__(self, num_pages: int, page_size: int) -> None:
        self.page_size = page_size
        self.values = [[0] * page_size for _ in range(num_pages)]

    def read(self, pages: Sequence[int], slot: int) -> int:
        return self.values[pages[slot // self.page_size]][slot % self.page_size]

    def write(self, pages: Sequence[int], slot: int, value: int) -> None:
        self.values[pages[slot // self.page_size]][slot % self.page_size] = value

    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None:
        for source, destination in moves:
            self.write(pages, destination, self.read(pages, source))

    def copy_page(self, source: int, destination: int) -> None:
        self.values[destination] = list(self.values[source])


class CacheShadow:
    """Drives a cache verb by verb and knows what its committed slots must hold afterwards.

    Every verb ends with `verify`. A verb that runs out of pages must have changed nothing, and returns False.
    """

    def __init__(self, factory: CacheFactory, num_pages: int, page_size: int) -> None:
        self.num_pages = num_pages
        self.store = SlotStore(num_pages, page_size)
        self.cache = factory(self.store, num_pages, page_size)
        self.expected: dict[int, list[int]] = {}
        self._num_written = 0

    def append(self, sequence: int, num_rows: int, path: Sequence[int]) -> bool:
        """A step: reserve, write a new value in every row, commit `path`."""
        try:
            self.cache.reserve(sequence, num_rows)
        except OutOfPagesError:
            self.verify()
            return False
        known = self.expected.setdefault(sequence, [])
        pages = self.cache.pages(sequence)
        self.verify()  # reserved is not committed, and a copy on write has lost nothing
        rows = range(self._num_written + 1, self._num_written + 1 + num_rows)
        self._num_written += num_rows
        for i, value in enumerate(rows):
            self.store.write(pages, len(known) + i, value)
        self.verify()  # rows behind the committed length are nobody's business
        self.cache.commit(sequence, path)
        known.extend(rows[row] for row in path)
        self.verify()
        return True

    def truncate(self, sequence: int, length: int) -> None:
        self.cache.truncate(sequence, length)
        del self.expected[sequence][length:]
        ensure(
            len(self.cache.pages(sequence)) == -(-length // self.cache.page_size),
            "truncate gives back the pages that no longer hold anything",
        )
        self.verify()

    def fork(self, parent: int, child: int) -> bool:
        try:
            self.cache.fork(parent, child)
        except OutOfPagesError:
            self.verify()
            return False
        self.expected[child] = list(self.expected[parent])
        self.verify()
        return True

    def release(self, sequence: int) -> None:
        self.cache.release(sequence)
        self.expected.pop(sequence, None)
        self.verify()

    def verify(self) -> None:
        self.cache.check_integrity()
        used: set[int] = set()
        for sequence, values in self.expected.items():
            ensure(self.cache.length(sequence) == len(values), f"sequence {sequence} has the wrong length")
            pages = self.cache.pages(sequence)
            found = [self.store.read(pages, slot) for slot in range(len(values))]
            ensure(found == values, f"sequence {sequence} holds {found}; expected {values}")
            used.update(pages)
        ensure(len(used) + self.cache.num_free_pages == self.num_pages, "pages were lost")


def check_cache(factory: CacheFactory, *, num_verbs: int = 400, seed: int = 0) -> None:
    """Put caches made by `factory` through every verb, in the order that `seed` gives, and through their refusals."""
    for page_size in (1, 3, 4):
        _check_random_verbs(CacheShadow(factory, 12, page_size), num_verbs, Random(seed))
    _check_refusals(factory)
    _check_sharing(factory)


def random_path(num_rows: int, random: Random) -> list[int]:
    """Row 0 and some later rows, ascending: what a tree may have accepted."""
    return [0, *(row for row in range(1, num_rows) if random.random() < 0.5)]


def _check_random_verbs(shadow: CacheShadow, num_verbs: int, random: Random) -> None:
    for step in range(num_verbs):
        known = sorted(shadow.expected)
        sequence = random.choice([*known, step])
        match random.choice(("append", "append", "append", "truncate", "fork", "release")):
            case "append":
                num_rows = random.randint(1, 6)
                is_chain = random.random() < 0.5
                path = range(random.randint(1, num_rows)) if is_chain else random_path(num_rows, random)
                shadow.append(sequence, num_rows, path)
            case "truncate" if known:
                sequence = random.choice(known)
                shadow.truncate(sequence, random.randint(0, len(shadow.expected[sequence])))
            case "fork" if known:
                shadow.fork(random.choice(known), num_verbs + step)
            case "release":
                shadow.release(sequence)
    for sequence in sorted(shadow.expected):
        shadow.release(sequence)
    ensure(shadow.cache.num_free_pages == shadow.num_pages, "every page is free after every release")


def _check_refusals(factory: CacheFactory) -> None:
    shadow = CacheShadow(factory, 4, 2)
    cache = shadow.cache
    ensure(cache.length(7) == 0, "an unknown sequence has length 0")
    cache.release(7)
    shadow.append(0, 3, (0, 1, 2))
    cache.reserve(0, 2)
    for path in ((1,), (0, 0), (1, 0), (0, 2)):
        ensure_raises(ValueError, partial(cache.commit, 0, path), f"commit refuses the path {path}")
    ensure_raises(OutOfPagesError, lambda: cache.reserve(0, 6), "reserve runs out of pages")
    ensure_raises(OutOfPagesError, lambda: cache.reserve(1, 9), "reserve runs out of pages")
    ensure_raises(ValueError, lambda: cache.truncate(0, 4), "truncate does not lengthen")
    ensure_raises(ValueError, lambda: cache.fork(0, 0), "fork needs a new sequence")
    shadow.verify()


def _check_sharing(factory: CacheFactory) -> None:
    """A fork costs a page only where one is half full; writing into a shared one copies it first."""
    shadow = CacheShadow(factory, 6, 4)
    shadow.append(0, 8, range(8))
    shadow.fork(0, 1)
    ensure(shadow.cache.num_free_pages == 4, "full pages are shared")
    shadow.truncate(1, 6)
    ensure(shadow.cache.num_free_pages == 4, "a shared page stays shared until somebody writes")
    shadow.append(1, 1, (0,))
    ensure(shadow.cache.num_free_pages == 3, "a write into a shared page gets a page of its own")
    shadow.fork(1, 2)
    ensure(shadow.cache.num_free_pages == 2, "a half full page is copied by a fork")
