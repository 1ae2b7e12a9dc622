"""The pages of the target and of every proposer that keeps a cache, for the same sequences.

The target's cache says which sequences there are. A proposer's model has *seen* a sequence as far as its own cache is
committed: it lags behind the target where all of a draft was accepted, where it was not asked, and where its context
is shorter; the proposer catches up when it is asked next.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from paceline.cache.base import IntegrityError, OutOfPagesError, SequenceCache


@dataclass(frozen=True, slots=True)
class DraftCache:
    """A proposer's cache, and the positions that its model can hold of one sequence."""

    cache: SequenceCache
    max_length: int


class CacheCoordinator:
    """`drafts`: by the proposer's name. `reuses_prefixes`: whether sequences may share what others have computed."""

    def __init__(self, target: SequenceCache, drafts: Mapping[str, DraftCache], *, reuses_prefixes: bool) -> None:
        self._target = target
        self._drafts = dict(drafts)
        self._reuses_prefixes = reuses_prefixes
        self._num_admitted: dict[int, int] = {}  # tokens known at admission: a draft may have seen all of them at once

    @property
    def page_size(self) -> int:
        """The target's."""
        return self._target.page_size

    @property
    def num_free_pages(self) -> int:
        return self._target.num_free_pages

    @property
    def sequences(self) -> Collection[int]:
        """The sequences that are known; valid until the next verb."""
        return self._target.sequences

    def length(self, sequence: int) -> int:
        return self._target.length(sequence)

    def pages(self, sequence: int) -> tuple[int, ...]:
        return self._target.pages(sequence)

    def reserve(self, sequence: int, num_rows: int) -> None:
        self._target.reserve(sequence, num_rows)

    def num_spare_slots(self, sequence: int) -> int:
        """Writable slots behind the committed length, in pages that the sequence has already."""
        return self._target.num_spare_slots(sequence)

    def admit(self, sequence: int, tokens: Sequence[int], namespace: str, num_rows: int, num_left: int) -> int:
        """Begin `sequence`: share what can be reused, take pages for all of `tokens` and `num_rows` more.

        Returns how many positions are there already; all of `tokens` is possible. Raises OutOfPagesError and leaves
        nothing behind where the target would have fewer than `num_left` pages left, reusable ones included, or where a
        proposer's cache has too few for as much of the sequence as the proposer's context holds.
        """
        if sequence in self._target.sequences:
            raise ValueError(f"sequence {sequence} exists already")
        try:
            self._num_admitted[sequence] = len(tokens)
            num_reused = self._begin(self._target, sequence, tokens, namespace, len(tokens) + num_rows, num_left)
            for draft in self._drafts.values():
                num_slots = min(len(tokens) + num_rows, draft.max_length)
                self._begin(draft.cache, sequence, tokens[: draft.max_length], namespace, num_slots, 0)
        except OutOfPagesError:
            self.release(sequence)
            raise
        return num_reused

    def _begin(
        self,
        cache: SequenceCache,
        sequence: int,
        tokens: Sequence[int],
        namespace: str,
        num_slots: int,
        num_left: int,
    ) -> int:
        num_reused = cache.adopt(sequence, tokens, namespace) if self._reuses_prefixes else 0
        num_held = len(cache.pages(sequence)) if self._reuses_prefixes else 0
        num_needed = -(-num_slots // cache.page_size) - num_held
        # Asked before anything is taken: an attempt that fails must not evict what others could have reused.
        if cache.num_free_pages - num_needed < num_left:
            raise OutOfPagesError(
                f"{num_needed} pages are needed and {num_left} are to be left; {cache.num_free_pages} are free"
            )
        cache.reserve(sequence, num_slots - num_reused)
        cache.reserve(sequence, 0)  # the pages stay; what will be written is said step by step
        return num_reused

    def commit(self, sequence: int, path: Sequence[int], num_known: int, accepted: Sequence[int]) -> None:
        """Make a step real: for the target the rows of `path`, for a proposer that was asked what it saw of the same.

        `num_known`: tokens known before the step. `accepted`: indices, among the draft tokens, of those that are
        emitted; ascending, each an ancestor of the next. A proposer's open reservation holds the run that ends with the
        newest known token, then its draft tokens in order; the last ones may be missing.
        """
        self._target.commit(sequence, path)
        num_new = max(
            0, self._target.length(sequence) - num_known
        )  # the newest token is in nobody's cache, trimmed or not
        for draft in self._drafts.values():
            cache = draft.cache
            num_reserved = cache.num_reserved(sequence)
            if num_reserved:
                num_run = num_known - cache.length(sequence)
                drafted = [num_run + i for i in accepted[:num_new] if num_run + i < num_reserved]
                cache.commit(sequence, [*range(num_run), *drafted])

    def publish(self, sequence: int, tokens: Sequence[int]) -> None:
        """Offer for reuse what is committed of `tokens`, as far as each model has seen them."""
        if self._reuses_prefixes:
            self._target.publish(sequence, tokens)
            for draft in self._drafts.values():
                draft.cache.publish(sequence, tokens)

    def seen(self, name: str, sequence: int) -> int:
        """Positions of `sequence` that the model of the proposer `name` has really seen."""
        return self._drafts[name].cache.length(sequence)

    def draft_room(self, name: str, num_known: int) -> int | None:
        """The most draft tokens that the context of the proposer `name` allows; None for one without a cache.

        The last draft token needs no row: those for k tokens end at position `num_known + k - 2`.
        """
        draft = self._drafts.get(name)
        return None if draft is None else max(0, draft.max_length + 1 - num_known)

    def release(self, sequence: int) -> None:
        """Forget `sequence` everywhere. What it has published stays reusable, so this is what a preemption does too."""
        for draft in self._drafts.values():
            draft.cache.release(sequence)
        self._target.release(sequence)  # last: no proposer's cache knows a sequence that the target's does not
        self._num_admitted.pop(sequence, None)

    def fork(self, parent: int, child: int) -> None:
        """Make `child` the same as `parent` in every cache. Raises OutOfPagesError and leaves nothing behind."""
        if child in self._target.sequences:
            raise ValueError(f"sequence {child} exists already")
        try:
            self._num_admitted[child] = self._num_admitted[parent]
            self._target.fork(parent, child)
            for draft in self._drafts.values():
                draft.cache.fork(parent, child)
        except OutOfPagesError:
            self.release(child)
            raise

    def repair(self, sequences: Collection[int]) -> None:
        """After an interrupt: keep those of `sequences` that every cache still has, and make every page whole again."""
        caches = [self._target, *(draft.cache for draft in self._drafts.values())]
        whole = {sequence for sequence in sequences if all(sequence in cache.sequences for cache in caches)}
        for cache in reversed(caches):
            cache.repair(whole)
        self._num_admitted = {sequence: self._num_admitted[sequence] for sequence in whole}

    def check_integrity(self) -> None:
        """Raise IntegrityError unless every cache is sound and all agree on the sequences. For use at any time."""
        self._target.check_integrity()
        known = set(self._target.sequences)
        if known != self._num_admitted.keys():
            raise IntegrityError(
                f"sequences {sorted(self._num_admitted)} were admitted; the target has {sorted(known)}"
            )
        for name, draft in self._drafts.items():
            draft.cache.check_integrity()
            if known != set(draft.cache.sequences):
                raise IntegrityError(
                    f"{name!r} has sequences {sorted(draft.cache.sequences)}; the target has {sorted(known)}"
                )
            for sequence in known:
                self._check_seen(name, draft, sequence)

    def _check_seen(self, name: str, draft: DraftCache, sequence: int) -> None:
        seen = draft.cache.length(sequence)
        if seen + draft.cache.num_reserved(sequence) > draft.max_length:
            raise IntegrityError(f"{name!r} has rows of sequence {sequence} past its {draft.max_length} positions")
        committed = self._target.length(sequence) + self._target.num_reserved(sequence)
        if seen > max(committed, self._num_admitted[sequence]):
            raise IntegrityError(f"{name!r} has seen {seen} positions of sequence {sequence}; {committed} exist")
