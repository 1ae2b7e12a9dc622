"""Everything that holds a part of a sequence, so that one can be ended in all rooms at once."""

from collections import Counter

from paceline.cache.paged import PagedCache
from paceline.engine.drafting import ProposerGroup
from paceline.engine.request import FinishReason
from paceline.engine.scheduler import Scheduler


class Roster:
    """`finish_counts`: how many sequences have ended for which reason."""

    def __init__(self, scheduler: Scheduler, proposers: ProposerGroup, cache: PagedCache) -> None:
        self._scheduler = scheduler
        self._proposers = proposers
        self._cache = cache
        self.finish_counts: Counter[FinishReason] = Counter()

    def end(self, sequence: int) -> None:
        """Withdraw `sequence` and free what it holds. An unknown one changes nothing."""
        if self._scheduler.remove(sequence):
            self.finish_counts[FinishReason.ABORT] += 1
        try:
            self._proposers.finish(sequence)
        finally:
            self._cache.release(sequence)

    def repair(self) -> None:
        """After an exception: what only half came or went is gone for good."""
        self._scheduler.repair()
        self._cache.repair(self._scheduler.sequences())
