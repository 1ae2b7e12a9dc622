"""An interrupt between any two bytecodes of any verb, repaired: contents, counts and the index are whole again."""

import pickle
from collections.abc import Callable
from functools import partial

import pytest

from paceline.cache import PagedCache
from paceline.testing.contracts import CacheShadow

PREFIX = [1, 2, 3, 4]


def prepared() -> CacheShadow:
    """Pages of two slots: two sequences and a fork at work, a prefix that nobody holds, one free page."""
    shadow = CacheShadow(PagedCache, 12, 2)
    prompts = {0: PREFIX, 1: [5, 6, 7, 8, 9], 2: [5, 6, 7, 8], 3: [0, 0], 4: [3, 1, 3, 1]}
    for sequence, tokens in prompts.items():
        shadow.adopt(sequence, tokens, "")
        shadow.append(sequence, len(tokens), range(len(tokens)), tokens)
    for sequence in (0, 1, 3):
        shadow.publish(sequence)
    shadow.fork(4, 5)
    shadow.release(0)
    shadow.release(3)
    return shadow


def adopt(cache: PagedCache) -> None:
    cache.adopt(9, [*PREFIX, 0], "")


def adopt_a_beginning(cache: PagedCache) -> None:
    cache.adopt(9, [5, 6, 7, 0], "")


def publish(cache: PagedCache) -> None:
    cache.publish(4, [3, 1, 3, 1])


def publish_beside_a_fork(cache: PagedCache) -> None:
    cache.publish(4, [3, 1, 3, 1])


def publish_a_duplicate(cache: PagedCache) -> None:
    cache.publish(2, [5, 6, 7, 8])


def reserve(cache: PagedCache) -> None:
    cache.reserve(1, 5)


def reserve_all(cache: PagedCache) -> None:
    cache.reserve(9, 2 * cache.num_free_pages)


def commit_a_tree(cache: PagedCache) -> None:
    cache.commit(1, (0, 2))


def truncate(cache: PagedCache) -> None:
    cache.truncate(1, 1)


def write_behind_a_truncation(cache: PagedCache) -> None:
    cache.reserve(2, 1)


def fork(cache: PagedCache) -> None:
    cache.fork(1, 9)


def release(cache: PagedCache) -> None:
    cache.release(1)


def before(shadow: CacheShadow, verb: Callable[[PagedCache], None]) -> None:
    cache = shadow.cache
    if verb is publish_beside_a_fork:  # whose first page is published already: by another, who is gone
        shadow.adopt(6, [], "")
        shadow.append(6, 2, (0, 1), [3, 1])
        shadow.publish(6)
        shadow.release(6)
    if verb is commit_a_tree:
        cache.reserve(1, 3)
    if verb is write_behind_a_truncation:
        cache.publish(2, [5, 6, 7, 8])
        cache.truncate(2, 1)


def check_repaired(shadow: CacheShadow, verb: Callable[[PagedCache], None], lengths: set[int], subject: int) -> None:
    cache = shadow.cache
    cache.repair([*shadow.expected, 9])
    cache.check_integrity()
    assert cache.length(subject) in lengths
    for sequence, values in shadow.expected.items():
        num_left = cache.length(sequence)
        if sequence != subject:
            assert num_left == len(values)
        found = [shadow.store.read(cache.pages(sequence), slot) for slot in range(num_left)] if num_left else []
        assert found[: len(values)] == values[:num_left]
    if verb is not reserve_all:  # which evicts it
        assert cache.adopt(10, PREFIX, "") == 4
        found = [shadow.store.read(cache.pages(10), slot) for slot in range(4)]
        assert found == [shadow._value("", PREFIX[: i + 1]) for i in range(4)]
    cache.check_integrity()
    for sequence in list(cache.sequences):
        cache.release(sequence)
    assert cache.num_free_pages == 12
    cache.check_integrity()


@pytest.mark.parametrize(
    ("verb", "subject", "lengths"),
    [
        (adopt, 9, {0, 4}),
        (adopt_a_beginning, 9, {0, 3}),
        (publish, 4, {4}),
        (publish_beside_a_fork, 4, {4}),
        (publish_a_duplicate, 2, {4}),
        (reserve, 1, {5}),
        (reserve_all, 9, {0}),
        (commit_a_tree, 1, {5, 7}),
        (truncate, 1, {5, 1}),
        (write_behind_a_truncation, 2, {1}),
        (fork, 9, {0, 5}),
        (release, 1, {0, 5}),
    ],
)
def test_any_bytecode(
    verb: Callable[[PagedCache], None], subject: int, lengths: set[int], interrupted: Callable[..., bool]
) -> None:
    num_opcodes, image = 0, pickle.dumps(prepared())
    while True:
        shadow = pickle.loads(image)
        cache = shadow.cache
        assert isinstance(cache, PagedCache)
        before(shadow, verb)
        if not interrupted(partial(verb, cache), num_opcodes):
            break
        check_repaired(shadow, verb, lengths, subject)
        num_opcodes += 1
    assert num_opcodes > 30
