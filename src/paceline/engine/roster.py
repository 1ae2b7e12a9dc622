"""Everything that holds a part of a sequence, so that one can be ended in all rooms at once."""

from collections import Counter

from paceline.cache.base import IntegrityError
from paceline.cache.coordinator import CacheCoordinator
from paceline.engine.drafting import ProposerGroup
from paceline.engine.output import FinishReason
from paceline.engine.request import SequenceState
from paceline.engine.scheduler import Scheduler


class Roster:
    """`finish_counts`: how many sequences have ended for which reason."""

    def __init__(self, scheduler: Scheduler, proposers: ProposerGroup, cache: CacheCoordinator) -> None:
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
        """After an exception: what only half came or went is gone for good.

        A running sequence whose pages were on their way starts again, which changes none of its tokens.
        """
        self._scheduler.repair()
        self._cache.repair([state.id for state in self._scheduler.running])
        for state in list(self._scheduler.running):
            if state.length != self._cache.length(state.id):
                self._scheduler.preempt(state.id)

    def check_integrity(self, num_pages: int) -> None:
        """Raise IntegrityError unless pages, lengths and tokens agree; `num_pages` are free when nobody runs."""
        self._cache.check_integrity()
        for state in self._scheduler.running:
            self._check_running(state)
        running = {state.id for state in self._scheduler.running}
        if running != set(self._cache.sequences):
            raise IntegrityError(f"sequences {sorted(running)} run; {sorted(self._cache.sequences)} hold pages")
        if not self._scheduler.running and self._cache.num_free_pages != num_pages:
            raise IntegrityError(f"no sequence runs and only {self._cache.num_free_pages} pages are free")

    def _check_running(self, state: SequenceState) -> None:
        cached, num_tokens = self._cache.length(state.id), len(state.tokens)
        is_right = cached == num_tokens - 1 if state.is_decoding else cached <= num_tokens
        if state.length != cached or not is_right:
            raise IntegrityError(
                f"sequence {state.id} has {num_tokens} tokens, {state.length} of them cached; its cache says {cached}"
            )
