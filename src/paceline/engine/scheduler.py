"""Which sequences run in a step, and how much of their prompts. Knows lengths, not tokens, and no runtime."""

from collections import deque
from collections.abc import Iterator
from itertools import islice

from paceline.cache.base import SequenceCache
from paceline.engine.batch import Batch, BatchEntry
from paceline.engine.request import SequenceState
from paceline.errors import UsageError
from paceline.runtime.base import RuntimeInfo

DEFAULT_PREFILL_CHUNK = 256  # rows; enough to use the machine fully, few enough to notice an interrupt soon
MAX_NUM_SEQS = 1  # the limit of this version: pages for one sequence at full capacity are all that is promised


class Scheduler:
    """First come, first served; a sequence keeps running until it ends. Prompts are read in chunks."""

    def __init__(self, cache: SequenceCache, info: RuntimeInfo, prefill_chunk: int) -> None:
        if not isinstance(prefill_chunk, int) or isinstance(prefill_chunk, bool) or prefill_chunk < 1:
            raise UsageError(f"prefill_chunk is {prefill_chunk!r}; expected an integer of at least 1")
        self._cache = cache
        self._chunk = min(prefill_chunk, info.max_rows)
        self._max_draft_tokens = min(info.max_rows, info.max_logits_rows) - 1
        self._vocab_size = info.vocab_size
        self._waiting: deque[SequenceState] = deque()
        self._running: dict[int, SequenceState] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._running)

    @property
    def running(self) -> Iterator[SequenceState]:
        return iter(self._running.values())

    def sequences(self) -> list[int]:
        """All sequences known, running ones first."""
        return [*self._running, *(state.id for state in self._waiting)]

    def repair(self) -> None:
        """Forget the second place of a sequence that an interrupt left both waiting and running."""
        self._waiting = deque(state for state in self._waiting if state.id not in self._running)

    def find(self, sequence: int) -> SequenceState | None:
        """The state of a sequence, waiting or running; None if it is not known."""
        if sequence in self._running:
            return self._running[sequence]
        return next((state for state in list(self._waiting) if state.id == sequence), None)

    def add(self, state: SequenceState) -> None:
        self._waiting.append(state)

    def remove(self, sequence: int) -> bool:
        """Forget `sequence`, waiting or running; whether it was known."""
        num_known = len(self)
        self._running.pop(sequence, None)
        self._waiting = deque(state for state in self._waiting if state.id != sequence)
        return len(self) < num_known

    def next_sequences(self) -> list[int]:
        """The sequences that `schedule` would put into a batch now."""
        num_free = MAX_NUM_SEQS - len(self._running)
        return [*self._running, *(state.id for state in islice(self._waiting, num_free))]

    def schedule(self) -> Batch:
        while self._waiting and len(self._running) < MAX_NUM_SEQS:
            self._running[self._waiting[0].id] = self._waiting[0]
            self._waiting.popleft()
        entries = [self._entry(state) for state in self._running.values()]
        return Batch(tuple(entries), self._cache, self._max_draft_tokens, self._vocab_size)

    def _entry(self, state: SequenceState) -> BatchEntry:
        num_left = len(state.tokens) - state.length
        num_run = min(num_left, self._chunk)
        return BatchEntry(state, num_run, is_prefill=state.is_prefilling, is_sampling=num_run == num_left)
