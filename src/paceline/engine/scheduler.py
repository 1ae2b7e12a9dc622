"""Which sequences run in a step, and how much of their prompts. Knows lengths, not tokens, and no runtime.

Every decoding sequence has a row in every step. Prompts are read in chunks beside them, in order of service: by
priority, then by arrival. A sequence is admitted when there are pages for all of its tokens and for the rows of its
first verification step, so nobody who was admitted waits for a page to read its prompt. Pages for the tokens that it
decides later are taken as it grows. When none are left, the last in order of service gives back all of its own and is
computed again later; the first always goes on, so no two can wait for each other.
"""

from bisect import insort
from collections.abc import Sequence
from time import perf_counter

from paceline.cache.base import IntegrityError, OutOfPagesError
from paceline.cache.coordinator import CacheCoordinator
from paceline.engine.batch import Batch, BatchEntry
from paceline.engine.options import Limits
from paceline.engine.request import SequenceState


def _rank(state: SequenceState) -> tuple[int, int]:
    return state.rank


class Scheduler:
    """Waiting and running sequences, each in order of service. `capacity`: slots of all pages together."""

    def __init__(self, cache: CacheCoordinator, limits: Limits, vocab_size: int, capacity: int) -> None:
        self._cache = cache
        self._limits = limits
        self._vocab_size = vocab_size
        self._capacity = capacity
        self._states: dict[int, SequenceState] = {}  # the truth: the lists follow from it
        self._waiting: list[SequenceState] = []
        self._running: list[SequenceState] = []
        self._refused: tuple[int, int, int] | None = None  # who had too few pages last, beside whom, of how many
        self.num_preemptions = 0

    def __len__(self) -> int:
        return len(self._states)

    @property
    def running(self) -> Sequence[SequenceState]:
        return self._running

    @property
    def waiting(self) -> Sequence[SequenceState]:
        return self._waiting

    @property
    def has_work(self) -> bool:
        """Whether a step would find something to do: not all sequences are held."""
        return any(not state.is_held for state in self._states.values())

    def sequences(self) -> list[int]:
        """All sequences known, in order of arrival."""
        return list(self._states)

    def repair(self) -> None:
        """Bring the lists in line with the states again, after an interrupt in the middle of a change."""
        states = sorted(self._states.values(), key=_rank)
        self._waiting = [state for state in states if not state.is_running]
        self._running = [state for state in states if state.is_running]

    def find(self, sequence: int) -> SequenceState | None:
        """The state of a sequence, waiting or running; None if it is not known."""
        return self._states.get(sequence)

    def add(self, state: SequenceState) -> None:
        self._states[state.id] = state
        insort(self._waiting, state, key=_rank)

    def remove(self, sequence: int) -> bool:
        """Forget `sequence`, waiting or running; whether it was known."""
        state = self._states.pop(sequence, None)
        if state is None:
            return False
        line = self._running if state.is_running else self._waiting
        if state in line:
            line.remove(state)
        return True

    def preempt(self, sequence: int) -> None:
        """Take a running sequence's pages away and let it wait for others; nothing that was emitted changes."""
        state = self._states.get(sequence)
        if state is None or not state.is_running:
            return
        self._cache.release(sequence)
        state.preempt()
        self._running.remove(state)
        insort(self._waiting, state, key=_rank)
        self.num_preemptions += 1

    def schedule(self) -> Batch:
        self._keep_room()
        self._admit()
        active = [state for state in self._running if not state.is_held]
        entries = [BatchEntry(state, 1, is_prefill=False, is_sampling=True) for state in active if state.is_decoding]
        entries += self._prefill([state for state in active if not state.is_decoding], len(entries))
        return Batch(tuple(entries), self._cache, self._limits, self._vocab_size)

    def _keep_room(self) -> None:
        """A slot for the next row of every decoding sequence, the last in order of service paying for it."""
        for state in list(self._running):
            while state.is_decoding and not state.is_held and not self._has_slot(state):
                self.preempt(self._last(self._running).id)

    def _has_slot(self, state: SequenceState) -> bool:
        if self._cache.num_spare_slots(state.id) > 0:
            return True
        try:
            self._cache.reserve(state.id, 1)
        except OutOfPagesError:
            return False
        return True

    def _admit(self) -> None:
        for state in list(self._waiting):
            if not (state.is_held or self._awaits_prompt(state) or self._find_place(state)):
                return  # nobody overtakes the first in line, or it could wait for ever

    def _awaits_prompt(self, state: SequenceState) -> bool:
        """Whether another choice of the same request is about to compute what this one begins with."""
        other = self._other_choice(state)
        return other is not None and not (other.is_decoding or other.is_held or other.num_output)

    def _other_choice(self, state: SequenceState) -> SequenceState | None:
        if state.request.fork_of is None or state.num_output or state.wants_prompt_logprobs:
            return None  # it begins where it must, behind its prompt or with all of that to score
        return self._states.get(state.request.fork_of)

    def _find_place(self, state: SequenceState) -> bool:
        """Admit `state`, at the cost of sequences with a lower priority and of held ones if it must be."""
        while len(self._running) >= self._limits.max_num_seqs or not self._take_pages(state):
            lesser = [other for other in self._running if other.is_held or other.rank[0] > state.rank[0]]
            if lesser and self._could_fit(state, lesser):
                self.preempt(self._last(lesser).id)
            elif self._running:
                return False
            else:
                raise IntegrityError(
                    f"no sequence runs and there are no pages for sequence {state.id}: pages were lost"
                )
        return True

    def _take_pages(self, state: SequenceState) -> bool:
        num_free, num_tokens = self._cache.num_free_pages, len(state.tokens)
        if self._is_still_refused(state, num_free):
            return False
        num_rows = min(1 + self._limits.max_draft_tokens, state.max_tokens - state.num_output)
        num_rows = min(num_rows, self._capacity - num_tokens)
        try:  # every running sequence may need a page soon: to take it would only preempt this one again
            num_left = len(self._running)
            length = self._begin(state, num_rows, num_left)
        except OutOfPagesError:
            self._refused = (state.id, len(self._running), num_free)
            return False
        if state.started is None:
            state.started, state.num_reused = perf_counter(), min(length, state.num_prompt)
        state.length, state.is_running = length, True
        self._waiting.remove(state)
        insort(self._running, state, key=_rank)
        return True

    def _begin(self, state: SequenceState, num_rows: int, num_left: int) -> int:
        """Pages for `state` and `num_rows` more; how many of its positions are there already."""
        other = self._other_choice(state)
        if other is not None and other.is_decoding:
            self._cache.fork_prefix(other.id, state.id, state.num_prompt, num_rows, num_left)
            return state.num_prompt
        is_reusing = not state.wants_prompt_logprobs
        namespace = state.request.namespace
        return self._cache.admit(state.id, state.tokens, namespace, num_rows, num_left, is_reusing=is_reusing)

    def _is_still_refused(self, state: SequenceState, num_free: int) -> bool:
        """Whether nothing has changed for the last that was refused: a look through the published pages takes long."""
        if self._refused is None or not self._running:
            return False
        sequence, num_running, num_free_then = self._refused
        return sequence == state.id and num_running <= len(self._running) and num_free <= num_free_then

    def _could_fit(self, state: SequenceState, lesser: Sequence[SequenceState]) -> bool:
        """Whether the pages of `lesser` would suffice, if nothing can be reused: to take fewer would be in vain."""
        num_given = sum([len(self._cache.pages(other.id)) for other in lesser])
        num_needed = -(-(len(state.tokens) + 1) // self._cache.page_size) + len(self._running) - len(lesser)
        return len(lesser) == len(self._running) or self._cache.num_free_pages + num_given >= num_needed

    def _prefill(self, states: Sequence[SequenceState], num_decoding: int) -> list[BatchEntry]:
        limits = self._limits
        chunk = limits.mixed_prefill_chunk if num_decoding else limits.prefill_chunk
        num_left = min(chunk, limits.token_budget - num_decoding)
        num_logits_left = limits.max_logits_rows - num_decoding - len(states)  # all others may want a row each
        entries = []
        for state in states:
            num_missing = len(state.tokens) - state.length
            num_run = min(max(1, num_missing), num_left)
            if state.wants_prompt_logprobs:
                num_run = min(num_run, num_logits_left + 1)
                num_logits_left -= num_run - 1
            if num_run == 0:
                break
            entries.append(
                BatchEntry(
                    state,
                    num_run,
                    is_prefill=True,
                    is_sampling=num_run >= num_missing,
                    is_rerun=num_missing == 0,
                    is_scoring=state.wants_prompt_logprobs,
                )
            )
            num_left -= num_run
        return entries

    @staticmethod
    def _last(states: Sequence[SequenceState]) -> SequenceState:
        """Who gives way first: one whose consumer is behind, else the last in order of service."""
        held = [state for state in states if state.is_held]
        return (held or states)[-1]
