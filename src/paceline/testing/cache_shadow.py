"""A cache's shadow: it goes through the same verbs and remembers what every slot should hold."""

from collections.abc import Callable, Collection, Sequence

from paceline.cache.base import OutOfPagesError, PageStore, SequenceCache
from paceline.testing.ensure import ensure

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

    What a slot holds depends on the tokens up to it and their namespace alone, so a page that is reused for other ones
    shows. A sequence that did not begin with `adopt` has tokens that no other has. Every verb ends with `verify`. A
    verb that runs out of pages must have changed nothing, and returns False.
    """

    def __init__(self, factory: CacheFactory, num_pages: int, page_size: int) -> None:
        self.num_pages = num_pages
        self.store = SlotStore(num_pages, page_size)
        self.cache = factory(self.store, num_pages, page_size)
        self.expected: dict[int, list[int]] = {}
        self.tokens: dict[int, list[int]] = {}
        self.namespaces: dict[int, str] = {}  # of those that began with `adopt`, and their forks
        self.published: set[tuple[str, tuple[int, ...]]] = set()  # every beginning that was ever offered
        self._frozen: dict[int, set[int]] = {}  # pages that a sequence has published
        self._values: dict[tuple[str, tuple[int, ...]], int] = {}
        self._num_written = 0

    def adopt(self, sequence: int, tokens: Sequence[int], namespace: str) -> int:
        num_reused = self.cache.adopt(sequence, tokens, namespace)
        known = list(tokens[:num_reused])
        ensure(len(known) == num_reused, "no more is reused than was asked for")
        is_known = not num_reused or (namespace, tuple(known)) in self.published
        ensure(is_known, f"{known} was never published in {namespace!r}")
        self.tokens[sequence], self.namespaces[sequence] = known, namespace
        self.expected[sequence] = [self._value(namespace, known[: i + 1]) for i in range(num_reused)]
        self._frozen[sequence] = set(self.cache.pages(sequence)[: num_reused // self.cache.page_size])
        self.verify()
        return num_reused

    def publish(self, sequence: int) -> None:
        tokens, size = self.tokens[sequence], self.cache.page_size
        self.cache.publish(sequence, tokens)
        num_full = len(tokens) // size
        namespace = self.namespaces.get(sequence)
        if namespace is not None:
            self.published.update((namespace, tuple(tokens[:i])) for i in range(1, num_full * size + 1))
            self._frozen[sequence] = set(self.cache.pages(sequence)[:num_full])
        self.verify()

    def append(self, sequence: int, num_rows: int, path: Sequence[int], tokens: Sequence[int] | None = None) -> bool:
        """A step: reserve, write every row, commit `path`. `tokens`: those of the path, else ones never seen before."""
        num_spare = self.cache.num_spare_slots(sequence)
        held = self.cache.pages(sequence) if sequence in self.expected else ()
        try:
            self.cache.reserve(sequence, num_rows)
        except OutOfPagesError:
            self.verify()
            return False
        ensure((num_spare >= num_rows) == (self.cache.pages(sequence) == held), "spare slots need no page more")
        ensure(self.cache.num_reserved(sequence) == num_rows, "what was reserved is known until the commit")
        rows = range(self._num_written + 1, self._num_written + 1 + num_rows)
        self._num_written += num_rows
        known = self.tokens.setdefault(sequence, [])
        values = self.expected.setdefault(sequence, [])
        self.verify()  # reserved is not committed, and a copy on write has lost nothing
        accepted = [-rows[row] for row in path] if tokens is None else list(tokens)
        self._write(sequence, rows, path, accepted)
        self.verify()  # rows behind the committed length are nobody's business
        self.cache.commit(sequence, path)
        for token in accepted:
            known.append(token)
            values.append(self._value(self._namespace(sequence), known))
        ensure(self.cache.num_reserved(sequence) == 0, "a commit closes the reservation")
        self.verify()
        return True

    def _write(self, sequence: int, junk: Sequence[int], path: Sequence[int], tokens: Sequence[int]) -> None:
        """Values that nothing else holds in all rows, then the right ones in those of the path."""
        known, pages, size = self.tokens[sequence], self.cache.pages(sequence), self.cache.page_size
        length = len(known)
        written = set(pages[length // size : -(-(length + len(junk)) // size)])
        self._thaw(sequence)
        for publisher, frozen in self._frozen.items():
            ensure(not written & frozen, f"sequence {sequence} may write to what {publisher} has published")
        for row, value in enumerate(junk):
            self.store.write(pages, length + row, -value)
        for i, row in enumerate(path):
            prefix = [*known, *tokens[: i + 1]]
            self.store.write(pages, length + row, self._value(self._namespace(sequence), prefix))

    def truncate(self, sequence: int, length: int) -> None:
        self.cache.truncate(sequence, length)
        del self.expected[sequence][length:]
        del self.tokens[sequence][length:]
        self._thaw(sequence)
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
        self.tokens[child] = list(self.tokens[parent])
        if parent in self.namespaces:
            self.namespaces[child] = self.namespaces[parent]
        self.verify()
        return True

    def release(self, sequence: int) -> None:
        self.cache.release(sequence)
        self._forget(sequence)
        self.verify()

    def repair(self, sequences: Collection[int]) -> None:
        self.cache.repair(sequences)
        for sequence in set(self.expected).difference(sequences):
            self._forget(sequence)
        self.verify()

    def verify(self) -> None:
        self.cache.check_integrity()
        used: set[int] = set()
        ensure(set(self.cache.sequences) == set(self.expected), "the cache knows the sequences that there are")
        for sequence, values in self.expected.items():
            ensure(self.cache.length(sequence) == len(values), f"sequence {sequence} has the wrong length")
            pages = self.cache.pages(sequence)
            found = [self.store.read(pages, slot) for slot in range(len(values))]
            ensure(found == values, f"sequence {sequence} holds {found}; expected {values}")
            used.update(pages)
        ensure(len(used) + self.cache.num_free_pages == self.num_pages, "pages were lost")

    def _thaw(self, sequence: int) -> None:
        """What a sequence has published and let go of may have become another's."""
        if sequence in self._frozen:
            self._frozen[sequence].intersection_update(self.cache.pages(sequence))

    def _forget(self, sequence: int) -> None:
        for table in (self.expected, self.tokens, self.namespaces, self._frozen):
            table.pop(sequence, None)

    def _namespace(self, sequence: int) -> str:
        return self.namespaces.get(sequence, "")

    def _value(self, namespace: str, tokens: Sequence[int]) -> int:
        return self._values.setdefault((namespace, tuple(tokens)), len(self._values) + 1)
