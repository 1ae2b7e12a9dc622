"""Reuse through PagedCache: what is shared, what is copied, what goes first, and that nothing grows."""

from collections.abc import Callable

import pytest

from paceline.cache import IntegrityError, OutOfPagesError, PagedCache
from paceline.testing.contracts import CacheShadow, SlotStore


def shadow_of(num_pages: int = 12, page_size: int = 4) -> CacheShadow:
    return CacheShadow(PagedCache, num_pages, page_size)


def run(shadow: CacheShadow, sequence: int, tokens: list[int], namespace: str = "") -> int:
    """Begin `sequence`, compute what is not there, publish; returns what was."""
    num_reused = shadow.adopt(sequence, tokens, namespace)
    num_left = len(tokens) - num_reused
    assert shadow.append(sequence, num_left, range(num_left), tokens[num_reused:])
    shadow.publish(sequence)
    return num_reused


def test_rejected_rows_are_never_reused() -> None:
    shadow = shadow_of()
    shadow.adopt(0, [1, 2], "")
    shadow.append(0, 8, (0, 1), [1, 2])  # the other six were drafts for 3, 4, 5, ...
    shadow.publish(0)
    assert shadow.adopt(1, [1, 2, 3, 4, 5, 6, 7, 8], "") == 0
    shadow.append(0, 4, (0, 2), [7, 8])  # a tree: rows 1 and 3 are rejected
    shadow.publish(0)
    assert shadow.adopt(2, [1, 2, 7, 8, 3, 4], "") == 4


def test_two_sequences_that_share_a_prefix_diverge_inside_a_draft() -> None:
    shadow = shadow_of()
    run(shadow, 0, [1, 2, 3, 4, 5, 6])
    assert shadow.adopt(1, [1, 2, 3, 4, 5], "") == 4
    shadow.append(1, 1, (0,), [5])
    shadow.append(0, 4, (0, 1, 2), [7, 8, 9])
    shadow.append(1, 4, (0, 1, 3), [6, 8, 8])
    shadow.publish(0)
    shadow.publish(1)
    assert shadow.adopt(2, [1, 2, 3, 4, 5, 6, 7, 8], "") == 8
    assert shadow.adopt(3, [1, 2, 3, 4, 5, 6, 8, 8], "") == 8
    assert shadow.cache.pages(2)[0] == shadow.cache.pages(3)[0]


def test_duplicate_is_swapped_for_the_published_page() -> None:
    shadow = shadow_of()
    for sequence in (0, 1):
        shadow.adopt(sequence, [1, 2, 3, 4], "")
        shadow.append(sequence, 6, range(6), [1, 2, 3, 4, 5, 6])
    shadow.publish(0)
    shadow.publish(1)
    assert shadow.cache.pages(0)[0] == shadow.cache.pages(1)[0]
    assert shadow.cache.pages(0)[1] != shadow.cache.pages(1)[1]  # not full, so not shared


def test_forks_that_share_unpublished_pages_publish_them_behind_the_same_page() -> None:
    shadow = shadow_of()
    tokens = list(range(1, 9))
    for sequence in (0, 1):
        shadow.adopt(sequence, tokens, "")
        shadow.append(sequence, 8, range(8), tokens)
    shadow.fork(0, 2)
    shadow.truncate(1, 4)
    shadow.publish(1)  # the first page of 0 and its fork is a duplicate now, their second page is not
    shadow.publish(0)
    assert shadow.cache.pages(2) == shadow.cache.pages(0)
    shadow.release(1)
    shadow.release(0)
    shadow.publish(2)
    shadow.release(2)
    assert shadow.adopt(3, tokens, "") == 8


def test_beginning_of_a_page_is_not_copied_where_no_page_is_free() -> None:
    shadow = shadow_of(num_pages=2, page_size=2)
    run(shadow, 0, [1, 2, 3, 4])
    assert shadow.adopt(1, [1, 2, 3, 9], "") == 2
    shadow.release(1)
    shadow.release(0)
    assert shadow.adopt(2, [1, 2, 3, 9], "") == 2  # its source is the only page that could be evicted
    shadow.release(2)
    assert shadow.adopt(3, [1, 2, 3, 4], "") == 4


def test_source_of_a_copy_counts_as_used() -> None:
    shadow = shadow_of(num_pages=4, page_size=2)
    for sequence, tokens in enumerate(([1, 2], [3, 4], [5, 6])):
        run(shadow, sequence, tokens)
        shadow.release(sequence)
    assert shadow.adopt(3, [1, 9], "") == 1
    shadow.append(4, 2, (0, 1))  # evicts the least recently used
    assert shadow.adopt(5, [3, 4], "") == 0
    assert shadow.adopt(6, [1, 2], "") == 2


def test_published_page_is_copied_even_for_its_only_holder() -> None:
    shadow = shadow_of()
    run(shadow, 0, [1, 2, 3, 4])
    (page,) = shadow.cache.pages(0)
    shadow.truncate(0, 2)
    assert shadow.cache.num_spare_slots(0) == 0
    shadow.append(0, 1, (0,), [9])
    assert shadow.cache.pages(0) != (page,)
    assert shadow.adopt(1, [1, 2, 3, 4], "") == 4


def test_no_room_for_the_copy_of_a_published_page_changes_nothing() -> None:
    shadow = shadow_of(num_pages=1)
    run(shadow, 0, [1, 2, 3, 4])
    shadow.truncate(0, 2)
    with pytest.raises(OutOfPagesError, match="1 pages are needed and 0 are free"):
        shadow.cache.reserve(0, 1)
    shadow.verify()


def test_a_failed_reserve_evicts_nothing() -> None:
    shadow = shadow_of(num_pages=3)
    run(shadow, 0, list(range(8)))
    shadow.release(0)
    assert not shadow.append(1, 16, range(16))
    assert shadow.adopt(2, list(range(8)), "") == 8


def test_publish_needs_the_tokens_of_what_it_publishes() -> None:
    shadow = shadow_of()
    shadow.adopt(0, [], "")
    shadow.append(0, 4, range(4), [1, 2, 3, 4])
    with pytest.raises(ValueError, match="3 tokens for 4 committed positions"):
        shadow.cache.publish(0, [1, 2, 3])


def test_publish_without_a_new_full_page_looks_at_no_token() -> None:
    class Untouchable(list[int]):
        def __getitem__(self, key: object) -> int:
            raise AssertionError(f"{key} was read")

        __iter__ = __len__ = __getitem__  # type: ignore[assignment]

    shadow = shadow_of()
    run(shadow, 0, [1, 2, 3, 4])
    shadow.append(0, 3, range(3), [5, 6, 7])
    shadow.cache.publish(0, Untouchable())


def test_repair_keeps_what_was_published() -> None:
    shadow = shadow_of()
    run(shadow, 0, [1, 2, 3, 4, 5])
    run(shadow, 1, [6, 7, 8, 9, 10])
    shadow.repair([1])
    assert shadow.adopt(2, [1, 2, 3, 4], "") == 4
    assert shadow.adopt(3, [6, 7, 8, 9], "") == 4


def test_repair_keeps_the_order_of_eviction() -> None:
    shadow = shadow_of(num_pages=3, page_size=2)
    for sequence, tokens in enumerate(([1, 2], [3, 4], [5, 6])):
        run(shadow, sequence, tokens)
    for sequence in (1, 0, 2):
        shadow.release(sequence)
    shadow.repair([])
    shadow.append(3, 2, (0, 1))
    assert shadow.adopt(4, [3, 4], "") == 0
    assert shadow.adopt(5, [1, 2], "") == 2
    assert shadow.adopt(6, [5, 6], "") == 2


def publish_a_free_page(cache: PagedCache) -> None:
    cache._index.add(-1, "", (8, 8), cache._pool._free[0])


def unpublish_a_reusable_page(cache: PagedCache) -> None:
    cache._index.remove(next(iter(cache._pool._reusable)))


def forget_a_reusable_page(cache: PagedCache) -> None:
    cache._pool._reusable.popitem()


def evict_beginnings_first(cache: PagedCache) -> None:
    cache._pool._reusable = dict.fromkeys(reversed(cache._pool._reusable))


def write_to_a_published_page(cache: PagedCache) -> None:
    cache._entries[1].length = cache._entries[1].num_reserved = 1
    cache._entries[1].num_published = 0


def hold_a_published_page_as_spare(cache: PagedCache) -> None:
    cache._entries[1].length = 2
    cache._entries[1].num_published = 1


def hold_an_end_without_its_beginning(cache: PagedCache) -> None:
    entry = cache._entries[1]
    entry.pages = entry.pages[::-1]


def publish_more_than_is_full(cache: PagedCache) -> None:
    cache._entries[1].num_published = 3


def claim_to_have_published(cache: PagedCache) -> None:
    cache._entries[2].num_published = 1


@pytest.mark.parametrize(
    "damage",
    [
        publish_a_free_page,
        unpublish_a_reusable_page,
        forget_a_reusable_page,
        evict_beginnings_first,
        write_to_a_published_page,
        hold_a_published_page_as_spare,
        hold_an_end_without_its_beginning,
        publish_more_than_is_full,
        claim_to_have_published,
    ],
)
def test_integrity_check_notices(damage: Callable[[PagedCache], None]) -> None:
    shadow = shadow_of(page_size=2)
    run(shadow, 0, [1, 2, 3, 4])
    shadow.release(0)
    run(shadow, 1, [5, 6, 7, 8])
    shadow.append(2, 2, (0, 1))
    cache = shadow.cache
    assert isinstance(cache, PagedCache)
    damage(cache)
    with pytest.raises(IntegrityError):
        cache.check_integrity()


def sizes(cache: PagedCache) -> dict[str, int]:
    """The length of every table that a cache has."""
    tables = {}
    for owner in (cache, cache._pool, cache._index):
        for name, table in vars(owner).items():
            if hasattr(table, "__len__"):
                tables[f"{type(owner).__name__}.{name}"] = len(table)
    tables["children"] = sum(len(node.children) for node in cache._index._by_page.values())
    return tables


def test_ten_thousand_sequences_leave_no_trace() -> None:
    cache = PagedCache(SlotStore(8, 4), 8, 4)
    for sequence in range(10_000):
        tokens = [sequence, *range(sequence % 14)]
        num_reused = cache.adopt(sequence, tokens, f"tenant {sequence % 1000}")
        cache.reserve(sequence, len(tokens) - num_reused)
        cache.commit(sequence, range(len(tokens) - num_reused))
        cache.publish(sequence, tokens)
        cache.release(sequence)
    cache.check_integrity()
    after = sizes(cache)
    assert after["PagedCache._entries"] == 0
    assert after["PagePool._free"] + after["PagePool._reusable"] == 8
    assert after["PrefixIndex._by_page"] == after["PrefixIndex._by_key"] == after["PagePool._reusable"]
    assert after["PrefixIndex._roots"] <= 8
    assert after["children"] <= 8
    cache.reserve(0, 32)  # all pages can be had
    cache.release(0)
    assert {name for name, size in sizes(cache).items() if size} == {"PagePool._free", "PagePool.counts"}
