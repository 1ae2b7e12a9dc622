"""The coordinator's own promises: admission, everywhere or nowhere, and an integrity check that can fail."""

from collections.abc import Callable

import pytest

from paceline.cache import CacheCoordinator, DraftCache, IntegrityError, OutOfPagesError, PagedCache
from paceline.testing.contracts import SlotStore


class Caches:
    """A target with 8 pages of 4 slots and two proposers."""

    def __init__(self, *, small: int = 4, reuses_prefixes: bool = True) -> None:
        self.target = PagedCache(SlotStore(8, 4), 8, 4)
        self.long = PagedCache(SlotStore(8, 4), 8, 4)
        self.short = PagedCache(SlotStore(small, 4), small, 4)
        drafts = {"long": DraftCache(self.long, 32), "short": DraftCache(self.short, 8)}
        self.all = CacheCoordinator(self.target, drafts, reuses_prefixes=reuses_prefixes)

    def read(self, sequence: int, tokens: list[int], namespace: str = "", num_rows: int = 1, num_left: int = 0) -> int:
        """Admit, commit all of `tokens` to the target and publish."""
        num_reused = self.all.admit(sequence, tokens, namespace, num_rows, num_left)
        num_rows = len(tokens) - num_reused
        self.all.reserve(sequence, num_rows)
        self.all.commit(sequence, range(num_rows), len(tokens), ())
        self.all.publish(sequence, tokens)
        self.all.check_integrity()
        return num_reused

    @property
    def free(self) -> tuple[int, int, int]:
        return self.target.num_free_pages, self.long.num_free_pages, self.short.num_free_pages

    @property
    def sequences(self) -> set[int]:
        return {*self.target.sequences, *self.long.sequences, *self.short.sequences, *self.all._num_admitted}


def test_admission_takes_all_pages_at_once() -> None:
    caches = Caches()
    assert caches.all.admit(0, [1, 2, 3, 4, 5], "", 4, 0) == 0
    assert caches.free == (5, 5, 2)  # 9 slots, and 8 where the context is shorter
    assert caches.all.num_spare_slots(0) == 12
    assert caches.all.num_free_pages == 5
    caches.all.reserve(0, 9)
    assert caches.all.num_free_pages == 5
    with pytest.raises(ValueError, match="sequence 0 exists already"):
        caches.all.admit(0, [1], "", 1, 0)
    assert caches.all.length(0) == 0
    assert list(caches.all.sequences) == [0]


@pytest.mark.parametrize("reuses_prefixes", [True, False])
@pytest.mark.parametrize(
    ("tokens", "num_rows", "num_left"),
    [(list(range(20)), 1, 3), (list(range(30)), 3, 0), ([7] * 5, 1, 0)],
    ids=["pages to be left", "target", "proposer"],
)
def test_refused_admission_leaves_nothing_behind(
    tokens: list[int], num_rows: int, num_left: int, reuses_prefixes: bool
) -> None:
    caches = Caches(small=3, reuses_prefixes=reuses_prefixes)
    if tokens == [7] * 5:
        caches.all.admit(9, [8] * 5, "", 1, 0)  # takes two of the three pages that the short proposer has
    before, known = caches.free, caches.sequences
    with pytest.raises(OutOfPagesError):
        caches.all.admit(0, tokens, "", num_rows, num_left)
    assert caches.free == before
    assert caches.sequences == known
    caches.all.check_integrity()


def test_refused_admission_evicts_nothing() -> None:
    caches = Caches()
    caches.read(0, list(range(16)))
    caches.all.release(0)
    with pytest.raises(OutOfPagesError, match="9 pages are needed and 0 are to be left; 8 are free"):
        caches.all.admit(1, [99] * 32, "", 1, 0)
    with pytest.raises(OutOfPagesError, match="1 pages are needed and 4 are to be left; 4 are free"):
        caches.all.admit(1, list(range(16)), "", 1, 4)
    assert caches.read(1, list(range(16))) == 16


def test_reusable_pages_count_as_left() -> None:
    caches = Caches()
    caches.read(0, list(range(12)))
    caches.all.release(0)
    caches.all.admit(1, [99] * 12, "", 4, 4)
    assert caches.all.num_free_pages == 4


def test_nothing_is_shared_where_prefixes_are_not_reused() -> None:
    caches = Caches(reuses_prefixes=False)
    tokens = list(range(8))
    assert caches.read(0, tokens) == 0
    assert caches.read(1, tokens) == 0
    assert not set(caches.all.pages(0)) & set(caches.all.pages(1))
    caches.all.release(0)
    assert caches.read(2, tokens) == 0


def test_namespaces_are_kept_apart() -> None:
    caches = Caches(small=8)
    assert caches.read(0, list(range(8)), "mine") == 0
    assert caches.read(1, list(range(8)), "theirs") == 0
    caches.all.release(1)
    assert caches.read(2, list(range(8)), "mine") == 8


def test_fork_is_everywhere() -> None:
    caches = Caches()
    caches.read(0, list(range(6)))
    caches.all.fork(0, 1)
    caches.all.check_integrity()
    assert caches.all.length(1) == 6
    assert 1 in caches.long.sequences
    assert 1 in caches.short.sequences
    with pytest.raises(ValueError, match="sequence 1 exists already"):
        caches.all.fork(0, 1)


def test_fork_is_nowhere_where_one_cache_has_no_room() -> None:
    caches = Caches(small=2)
    caches.read(0, list(range(6)))
    caches.short.reserve(0, 6)
    caches.short.commit(0, range(6))
    before = caches.free
    with pytest.raises(OutOfPagesError):
        caches.all.fork(0, 1)
    assert caches.free == before
    assert caches.sequences == {0}
    caches.all.check_integrity()


def test_commit_leaves_proposers_alone_that_were_not_asked() -> None:
    caches = Caches()
    caches.read(0, [1, 2, 3])
    caches.long.reserve(0, 6)  # catches up with three, the newest, two of its draft's three tokens
    caches.all.reserve(0, 4)
    caches.all.commit(0, range(4), 4, range(3))
    assert caches.all.length(0) == 7
    assert caches.all.seen("long", 0) == 6
    assert caches.all.seen("short", 0) == 0
    caches.all.check_integrity()


def test_commit_moves_the_accepted_path_of_a_tree() -> None:
    caches = Caches()
    store = caches.long._store
    assert isinstance(store, SlotStore)
    caches.read(0, [1, 2, 3])
    caches.long.reserve(0, 8)  # a run of four, and a row for each of four nodes
    for slot in range(8):
        store.write(caches.long.pages(0), slot, slot + 1)
    caches.all.reserve(0, 5)
    caches.all.commit(0, (0, 2, 4), 4, (1, 3))
    assert caches.all.seen("long", 0) == 6
    assert [store.read(caches.long.pages(0), slot) for slot in range(6)] == [1, 2, 3, 4, 6, 8]


def test_repair_keeps_what_is_whole_in_every_cache() -> None:
    caches = Caches(small=8)
    caches.read(0, list(range(8)))
    caches.read(1, list(range(4)))
    caches.read(2, [9] * 4)
    caches.short.release(1)  # as if an interrupt had struck in the middle of its end
    caches.all.reserve(0, 3)
    with pytest.raises(IntegrityError):
        caches.all.check_integrity()
    caches.all.repair([0, 1, 5])
    caches.all.check_integrity()
    assert caches.sequences == {0}
    assert caches.all.length(0) == 8
    assert caches.read(3, [9] * 4) == 4  # one failure does not empty everybody's cache


def test_ten_thousand_sequences_leave_no_trace() -> None:
    caches = Caches()
    for sequence in range(10_000):
        caches.all.admit(sequence, [sequence % 7, sequence % 5, 3, 4, 5], f"tenant {sequence % 50}", 2, 0)
        if sequence % 3 == 0:
            caches.all.fork(sequence, -1)
            caches.all.release(-1)
        caches.all.release(sequence)
    caches.all.check_integrity()
    assert caches.sequences == set()
    assert caches.free == (8, 8, 4)


@pytest.mark.parametrize("verb", ["admit", "fork", "release", "commit", "publish"])
def test_interrupt_at_any_bytecode_can_be_repaired(
    verb: str, interrupted: Callable[[Callable[[], object], int], bool]
) -> None:
    num_opcodes = 0
    while True:
        caches = Caches()
        caches.read(0, [1, 2, 3, 4, 5], num_rows=2)
        caches.long.reserve(0, 7)
        caches.all.reserve(0, 2)
        calls: dict[str, Callable[[], object]] = {
            "admit": lambda: caches.all.admit(1, [1, 2, 3, 4, 6], "", 1, 0),  # noqa: B023
            "fork": lambda: caches.all.fork(0, 1),  # noqa: B023
            "release": lambda: caches.all.release(0),  # noqa: B023
            "commit": lambda: caches.all.commit(0, (0, 1), 6, (0,)),  # noqa: B023
            "publish": lambda: caches.all.publish(0, [1, 2, 3, 4, 5]),  # noqa: B023
        }
        if not interrupted(calls[verb], num_opcodes):
            break
        caches.all.repair([0, 1])
        caches.all.check_integrity()
        for sequence in list(caches.all.sequences):
            caches.all.release(sequence)
        assert caches.free == (8, 8, 4)
        num_opcodes += 1
    assert num_opcodes > 30


def forget_a_sequence(caches: Caches) -> None:
    caches.target.release(0)


def forget_an_admission(caches: Caches) -> None:
    caches.all._num_admitted.clear()


def keep_a_sequence(caches: Caches) -> None:
    caches.long.reserve(5, 1)


def lose_a_sequence(caches: Caches) -> None:
    caches.short.release(0)


def lose_a_page(caches: Caches) -> None:
    caches.long._pool._free.pop()


def see_the_future(caches: Caches) -> None:
    caches.long.reserve(0, 8)
    caches.long.commit(0, range(8))


def pass_the_context(caches: Caches) -> None:
    caches.short.reserve(0, 9)


@pytest.mark.parametrize(
    "damage",
    [
        forget_a_sequence,
        forget_an_admission,
        keep_a_sequence,
        lose_a_sequence,
        lose_a_page,
        see_the_future,
        pass_the_context,
    ],
)
def test_integrity_check_notices(damage: Callable[[Caches], None]) -> None:
    caches = Caches()
    caches.read(0, [1, 2, 3, 4])
    damage(caches)
    with pytest.raises(IntegrityError):
        caches.all.check_integrity()
