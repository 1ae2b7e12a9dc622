"""The prefix index: keys that cannot run together, collisions that cost a reuse and nothing else, a bounded search."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.cache import IntegrityError, PagedCache
from paceline.cache.prefix import MAX_CHILDREN_SEARCHED, ROOT_PAGE, Match, PrefixIndex, key_material
from paceline.testing.contracts import CacheShadow

KEYS = st.tuples(st.binary(max_size=20), st.text(max_size=9), st.lists(st.integers(0, 2**40), max_size=3))


@settings(max_examples=60)
@given(KEYS, KEYS)
def test_different_parts_make_different_keys(
    one: tuple[bytes, str, list[int]], other: tuple[bytes, str, list[int]]
) -> None:
    assert (key_material(*one) == key_material(*other)) == (one == other)


def test_parts_do_not_run_together() -> None:
    token = int.from_bytes(b"bcdefghi", "little")
    assert key_material(b"", "a", [token, 7]) != key_material(b"", "abcdefghi", [7])
    assert key_material(b"a", "bc", [7]) != key_material(b"ab", "c", [7])
    assert key_material(b"", "\ud800", [7]) != key_material(b"", "?", [7])


def index_of(*chains: tuple[str, list[tuple[int, ...]]]) -> PrefixIndex:
    """Chains of pages, numbered in order; pages of two tokens."""
    index, page = PrefixIndex(2), 0
    for namespace, chain in chains:
        parent = ROOT_PAGE
        for tokens in chain:
            found = index.add(parent, namespace, tokens, page)
            assert found is not None
            parent, page = found, page + 1
    index.check_integrity()
    return index


def test_longest_chain_then_the_closest_page() -> None:
    index = index_of(("n", [(1, 2), (3, 4), (5, 6)]), ("n", [(1, 2), (3, 9)]))
    assert index.find([1, 2, 3, 4, 5, 6], "n") == Match((0, 1, 2))
    assert index.find([1, 2, 3, 4, 5, 7], "n") == Match((0, 1), 2, 1)
    assert index.find([1, 2, 3], "n") == Match((0,), 4, 1)  # the newest of equals
    assert index.find([1, 2, 7], "n") == Match((0,))
    assert index.find([1], "n") == Match((), 0, 1)
    assert index.find([], "n") == Match()
    assert index.find([3, 4], "n") == Match()  # the same tokens behind other ones are not the same
    assert index.find([1, 2, 3, 4], "m") == Match()


def test_search_for_a_beginning_is_bounded_and_starts_with_the_newest() -> None:
    index = PrefixIndex(2)
    for page in range(MAX_CHILDREN_SEARCHED + 1):
        index.add(ROOT_PAGE, "", (page, 0), page)
    assert index.find([0, 1], "") == Match()
    assert index.find([1, 1], "") == Match((), 1, 1)
    assert index.find([MAX_CHILDREN_SEARCHED, 1], "") == Match((), MAX_CHILDREN_SEARCHED, 1)
    assert index.find([0, 0], "") == Match((0,))  # whole pages are found however many there are


def constant(data: bytes) -> bytes:  # noqa: ARG001
    return b"same"


def colliding(store: object, num_pages: int, page_size: int) -> PagedCache:
    return PagedCache(store, num_pages, page_size, digest=constant)


def test_collision_is_a_miss_and_replaces_nothing() -> None:
    shadow = CacheShadow(colliding, 12, 2)
    chains = {0: [1, 2, 3, 4], 1: [5, 6, 7, 8], 2: [1, 2, 9, 9]}
    for sequence, tokens in chains.items():
        shadow.adopt(sequence, tokens, "n")
        left = tokens[len(shadow.tokens[sequence]) :]
        shadow.append(sequence, len(left), range(len(left)), left)
        shadow.publish(sequence)
        shadow.append(sequence, 2, (0, 1), [1, 1])
        shadow.publish(sequence)
    assert shadow.adopt(3, [1, 2, 3, 4], "n") == 2  # the only page that could be published
    assert shadow.adopt(4, [5, 6, 7, 8], "n") == 0
    assert shadow.adopt(5, [1, 2], "m") == 0
    for sequence in range(6):
        shadow.release(sequence)
    assert shadow.cache.num_free_pages == 12


def test_collision_of_a_child_with_the_same_tokens_is_a_miss() -> None:
    index = PrefixIndex(2, constant)
    assert index.add(ROOT_PAGE, "n", (1, 2), 0) == 0
    assert index.add(0, "n", (1, 2), 1) is None  # equal tokens and key, another parent
    assert index.add(ROOT_PAGE, "m", (1, 2), 2) is None
    assert index.find([1, 2, 1, 2], "n") == Match((0,))
    index.check_integrity()


def test_pages_are_removed_from_the_end() -> None:
    index = index_of(("n", [(1, 2), (3, 4)]))
    with pytest.raises(IntegrityError, match="page 0 would be unpublished before page 1"):
        index.remove(0)
    index.remove(1)
    index.remove(0)
    assert len(index) == 0
    assert index._roots == {}
    assert index._by_key == {}


def test_page_is_published_once() -> None:
    index = index_of(("n", [(1, 2)]))
    with pytest.raises(IntegrityError, match="page 0 is published already"):
        index.add(ROOT_PAGE, "n", (3, 4), 0)


def lose_a_parent(index: PrefixIndex) -> None:
    del index._by_page[0]


def lose_a_key(index: PrefixIndex) -> None:
    index._by_key.clear()


def keep_a_key(index: PrefixIndex) -> None:
    index._by_key[b"old"] = index._by_page[1]


def lose_a_child(index: PrefixIndex) -> None:
    index._by_page[0].children.clear()


def keep_a_child(index: PrefixIndex) -> None:
    index._by_page[1].children[7] = index._by_page[0]


def keep_a_namespace(index: PrefixIndex) -> None:
    index._roots["old"] = index._root("old")


def lose_a_namespace(index: PrefixIndex) -> None:
    index._roots.clear()


def swap_a_page(index: PrefixIndex) -> None:
    index._by_page[1].page = 0


def cut_tokens(index: PrefixIndex) -> None:
    index._by_page[1].tokens = (3,)


@pytest.mark.parametrize(
    "damage",
    [
        lose_a_parent,
        lose_a_key,
        keep_a_key,
        lose_a_child,
        keep_a_child,
        keep_a_namespace,
        lose_a_namespace,
        swap_a_page,
        cut_tokens,
    ],
)
def test_integrity_check_notices(damage: Callable[[PrefixIndex], None]) -> None:
    index = index_of(("n", [(1, 2), (3, 4)]))
    damage(index)
    with pytest.raises(IntegrityError):
        index.check_integrity()


@pytest.mark.parametrize("damage", [lose_a_key, keep_a_key, lose_a_child, keep_a_child, keep_a_namespace])
def test_repair_derives_everything_from_the_pages(damage: Callable[[PrefixIndex], None]) -> None:
    index = index_of(("n", [(1, 2), (3, 4)]))
    damage(index)
    index.repair()
    index.check_integrity()
    assert index.find([1, 2, 3, 4], "n") == Match((0, 1))


def test_repair_drops_what_has_lost_its_parent() -> None:
    index = index_of(("n", [(1, 2), (3, 4)]), ("n", [(5, 6)]))
    lose_a_parent(index)
    index.repair()
    index.check_integrity()
    assert index.find([1, 2, 3, 4], "n") == Match()
    assert index.find([5, 6], "n") == Match((2,))
