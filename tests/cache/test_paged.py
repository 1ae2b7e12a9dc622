"""PagedCache against a shadow that knows what every slot must hold, and an integrity check that can fail."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from paceline.cache import IntegrityError, OutOfPagesError, PagedCache
from paceline.testing import check_cache
from paceline.testing.contracts import CacheShadow, SlotStore


def test_contract() -> None:
    check_cache(PagedCache)


class Lifetimes(RuleBasedStateMachine):
    """Any verbs in any order; the shadow checks contents, lengths and integrity after each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.shadow = CacheShadow(PagedCache, num_pages=9, page_size=3)
        self.next_sequence = 0

    def one(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.shadow.expected)))

    @rule(num_rows=st.integers(1, 7), seed=st.integers(0, 99))
    def start(self, num_rows: int, seed: int) -> None:
        self.shadow.append(self.next_sequence, num_rows, range(seed % num_rows + 1))
        self.next_sequence += 1

    @rule(tokens=st.lists(st.integers(0, 1), max_size=12), namespace=st.sampled_from(["a", "b"]))
    def adopt(self, tokens: list[int], namespace: str) -> None:
        self.shadow.adopt(self.next_sequence, tokens, namespace)
        self.next_sequence += 1

    @precondition(lambda self: self.shadow.expected)
    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        self.shadow.publish(self.one(data))

    @precondition(lambda self: self.shadow.expected)
    @rule(data=st.data(), num_rows=st.integers(1, 7))
    def step(self, data: st.DataObject, num_rows: int) -> None:
        rows = data.draw(st.sets(st.integers(1, num_rows - 1)) if num_rows > 1 else st.just(set()))
        sequence, path = self.one(data), [0, *sorted(rows)]
        tokens = None
        if sequence in self.shadow.namespaces:
            tokens = data.draw(st.lists(st.integers(0, 1), min_size=len(path), max_size=len(path)))
        self.shadow.append(sequence, num_rows, path, tokens)

    @precondition(lambda self: self.shadow.expected)
    @rule(data=st.data())
    def step_without_acceptance(self, data: st.DataObject) -> None:
        self.shadow.append(self.one(data), 2, ())

    @precondition(lambda self: self.shadow.expected)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        sequence = self.one(data)
        self.shadow.truncate(sequence, data.draw(st.integers(0, len(self.shadow.expected[sequence]))))

    @precondition(lambda self: self.shadow.namespaces)
    @rule(data=st.data(), num=st.integers(1, 4), tokens=st.lists(st.integers(0, 1), min_size=2, max_size=2))
    def rewrite_what_was_published(self, data: st.DataObject, num: int, tokens: list[int]) -> None:
        sequence = data.draw(st.sampled_from(sorted(self.shadow.namespaces)))
        self.shadow.publish(sequence)
        self.shadow.truncate(sequence, max(0, len(self.shadow.expected[sequence]) - num))
        self.shadow.append(sequence, 2, (0, 1), tokens)

    @precondition(lambda self: self.shadow.expected)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        self.shadow.fork(self.one(data), self.next_sequence)
        self.next_sequence += 1

    @precondition(lambda self: self.shadow.expected)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.shadow.release(self.one(data))

    @precondition(lambda self: self.shadow.expected)
    @rule(data=st.data())
    def repair(self, data: st.DataObject) -> None:
        self.shadow.repair(data.draw(st.sets(st.sampled_from(sorted(self.shadow.expected)))))

    @invariant()
    def is_sound(self) -> None:
        self.shadow.verify()


TestLifetimes = Lifetimes.TestCase
TestLifetimes.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def cache_of(num_pages: int = 4, page_size: int = 2) -> PagedCache:
    return PagedCache(SlotStore(num_pages, page_size), num_pages, page_size)


def test_chain_moves_nothing() -> None:
    class NoMoves(SlotStore):
        def copy_slots(self, pages: object, moves: object) -> None:  # noqa: ARG002
            raise AssertionError("a chain was moved")

    cache = PagedCache(NoMoves(4, 2), 4, 2)
    cache.reserve(0, 5)
    cache.commit(0, range(3))
    assert cache.length(0) == 3


def test_pages_are_the_same_object_until_they_change() -> None:
    cache = cache_of()
    cache.reserve(0, 2)
    pages = cache.pages(0)
    cache.commit(0, (0,))
    cache.reserve(0, 1)
    assert cache.pages(0) is pages


def test_copy_that_fails_loses_no_page() -> None:
    class Interrupting(SlotStore):
        def copy_page(self, source: int, destination: int) -> None:  # noqa: ARG002
            raise KeyboardInterrupt

    cache = PagedCache(Interrupting(4, 2), 4, 2)
    cache.reserve(0, 3)
    cache.commit(0, range(3))
    with pytest.raises(KeyboardInterrupt):
        cache.fork(0, 1)
    cache.check_integrity()
    cache.release(0)
    assert cache.num_free_pages == 4


def test_commit_needs_a_reservation_of_its_own() -> None:
    cache = cache_of()
    cache.reserve(0, 2)
    cache.commit(0, (0,))
    with pytest.raises(ValueError, match="reaches past the 0 reserved rows"):
        cache.commit(0, (0,))


def test_out_of_pages_names_the_numbers() -> None:
    with pytest.raises(OutOfPagesError, match="5 pages are needed and 4 are free"):
        cache_of().reserve(0, 9)


def test_unusable_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="0 pages of 2 slots"):
        cache_of(num_pages=0)


def leak_a_page(cache: PagedCache) -> None:
    cache._pool._free.pop()


def free_a_page_twice(cache: PagedCache) -> None:
    cache._pool._free.append(cache._pool._free[0])


def count_wrongly(cache: PagedCache) -> None:
    cache._pool.counts[cache.pages(0)[0]] += 1


def overrun(cache: PagedCache) -> None:
    cache._entries[0].length = 99


def hold_a_page_twice(cache: PagedCache) -> None:
    page = cache.pages(0)[0]
    cache._entries[0].pages += (page,)
    cache._pool.counts[page] += 1


def write_to_a_shared_page(cache: PagedCache) -> None:
    cache.fork(0, 1)
    cache._entries[1].length = 1
    cache._entries[1].num_reserved = 1


@pytest.mark.parametrize(
    "damage",
    [leak_a_page, free_a_page_twice, count_wrongly, overrun, hold_a_page_twice, write_to_a_shared_page],
)
def test_integrity_check_notices(damage: Callable[[PagedCache], None]) -> None:
    cache = cache_of()
    cache.reserve(0, 4)
    cache.commit(0, range(4))
    cache.check_integrity()
    damage(cache)
    with pytest.raises(IntegrityError):
        cache.check_integrity()


def test_random_is_reproducible() -> None:
    """Equal verbs give equal pages, so that a run can be repeated."""

    def run() -> list[tuple[int, ...]]:
        random, cache, pages = Random(1), cache_of(8), []
        for step in range(50):
            sequence = random.randrange(3)
            cache.release(sequence)
            cache.reserve(sequence, step % 4 + 1)
            pages.append(cache.pages(sequence))
        return pages

    assert run() == run()


def test_repair_frees_what_nobody_holds() -> None:
    cache = PagedCache(SlotStore(8, 4), 8, 4)
    cache.reserve(1, 6)
    cache.commit(1, range(6))
    cache.reserve(2, 5)
    cache._pool._free.pop()  # as if an interrupt had struck between taking a page and owning it
    with pytest.raises(IntegrityError):
        cache.check_integrity()
    cache.repair([1])
    cache.check_integrity()
    assert cache.length(1) == 6
    assert cache.num_free_pages == 6
