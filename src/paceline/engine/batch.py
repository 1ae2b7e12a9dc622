"""One step's work as rows: which tokens of which sequences ride in the forward, and how its results come back."""

from collections.abc import Iterator, Mapping, Set

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance.base import Verification
from paceline.cache.coordinator import CacheCoordinator
from paceline.controller.base import BatchView, SequenceView
from paceline.engine.options import Limits
from paceline.engine.request import SequenceState
from paceline.proposers.base import Draft
from paceline.runtime.base import Scores, Segment
from paceline.value import value

Logits = NDArray[np.float32]  # [rows, vocabulary]
Drafts = Mapping[int, Draft]  # by sequence; those that a proposer was asked about


@value
class BatchEntry:
    """A sequence's part in the step: `num_run` known tokens from its cached length on.

    The entry samples when its run ends with the newest token. Then draft tokens follow the run, and the row of the
    newest token and those of the draft want logits: rows `[num_run - 1, num_run + draft tokens)` of the segment.

    `is_scoring`: all rows of the run want logits, for the prompt's log-probabilities.

    `is_rerun`: all of the tokens are cached already, by other sequences; the newest runs again for its logits alone.
    """

    state: SequenceState
    num_run: int
    is_prefill: bool
    is_sampling: bool
    is_rerun: bool = False
    is_scoring: bool = False

    @property
    def wants_logprobs(self) -> bool:
        return self.is_scoring or (self.is_sampling and self.state.request.params.logprobs is not None)

    @property
    def first_logits_row(self) -> int:
        """The first row of the segment that wants logits; every later one does too."""
        if self.is_scoring:
            return 0
        return self.num_run - 1 if self.is_sampling else self.num_run

    def segment(self, draft: Draft | None, pages: tuple[int, ...]) -> Segment:
        state, num_run = self.state, self.num_run
        length = state.length - self.is_rerun
        run = tuple(state.tokens[length : length + num_run])
        drafted, parents = (draft.tokens, draft.parents) if draft else ((), ())
        return Segment(
            sequence=state.id,
            length=length,
            pages=pages,
            tokens=run + drafted,
            parents=tuple([num_run + parent for parent in parents]) if parents else (),  # -1 is the last row of the run
            logits_rows=tuple(range(self.first_logits_row, num_run + len(drafted))),
            is_write_suppressed=self.is_rerun,
        )


class Batch:
    """The entries of a step. `vocab_size`: ids from there on are padding."""

    def __init__(
        self, entries: tuple[BatchEntry, ...], cache: CacheCoordinator, limits: Limits, vocab_size: int
    ) -> None:
        self.entries = entries
        self._cache = cache
        self._limits = limits
        self._vocab_size = vocab_size

    @property
    def num_prefill_rows(self) -> int:
        return sum([entry.num_run for entry in self.entries if entry.is_prefill])

    @property
    def num_decode_rows(self) -> int:
        return sum([entry.num_run for entry in self.entries if not entry.is_prefill])

    def view(self) -> BatchView:
        """What the controller may know."""
        num_logits_rows = sum([entry.num_run - entry.first_logits_row for entry in self.entries])
        num_prefill_rows = self.num_prefill_rows
        num_rows = num_prefill_rows + self.num_decode_rows
        limits = self._limits
        return BatchView(
            sequences=self._sequence_views(),
            num_prefill_rows=num_prefill_rows,
            max_draft_rows=min(limits.token_budget - num_rows, limits.max_logits_rows - num_logits_rows),
        )

    def rows(self, drafts: Drafts) -> list[Segment]:
        """The forward's segments, with writable slots reserved behind each sequence's cached positions."""
        segments = []
        for entry in self.entries:
            sequence = entry.state.id
            draft = drafts.get(sequence)
            if not entry.is_rerun:
                self._cache.reserve(sequence, entry.num_run + (len(draft.tokens) if draft else 0))
            segments.append(entry.segment(draft, self._cache.pages(sequence)))
        return segments

    def verifications(self, drafts: Drafts, scores: Scores, withdrawn: Set[int]) -> list[Verification]:
        """One for each entry that samples, in order, but for those that were withdrawn; logits are views into `scores`.

        A withdrawn sequence's results are void: its rows were computed for nothing.
        """
        verifications = []
        for entry, begin, end in self._logits_rows(drafts):
            if entry.is_sampling and entry.state.id not in withdrawn:
                newest = begin + entry.num_run - 1 - entry.first_logits_row
                verifications.append(self._verification(entry, drafts.get(entry.state.id), scores, newest, end))
        return verifications

    def logits(self, drafts: Drafts, scores: Scores) -> dict[int, Logits]:
        """By sequence the logits of all its rows that wanted them, from `BatchEntry.first_logits_row` on; views."""
        return {
            entry.state.id: scores.logits[begin:end, : self._vocab_size]
            for entry, begin, end in self._logits_rows(drafts)
            if entry.wants_logprobs
        }

    def _logits_rows(self, drafts: Drafts) -> Iterator[tuple[BatchEntry, int, int]]:
        """Each entry with the half-open range of its rows in the scores."""
        end = 0
        for entry in self.entries:
            draft = drafts.get(entry.state.id)
            begin, end = end, end + entry.num_run - entry.first_logits_row + (len(draft.tokens) if draft else 0)
            yield entry, begin, end

    def _verification(
        self, entry: BatchEntry, draft: Draft | None, scores: Scores, begin: int, end: int
    ) -> Verification:
        state = entry.state
        if scores.rows[begin] != (state.id, entry.num_run - 1):
            raise RuntimeError(f"result row {begin} is {scores.rows[begin]}; expected sequence {state.id}")
        drafted, parents = (draft.tokens, draft.parents) if draft else ((), ())
        return Verification(
            sequence=state.id,
            logits=scores.logits[begin:end, : self._vocab_size],
            draft=drafted,
            parents=parents or tuple(range(-1, len(drafted) - 1)),
            position=len(state.tokens),
            sampler=state.sampler,
            q=draft.q.q if draft and draft.q else None,
        )

    def _sequence_views(self) -> tuple[SequenceView, ...]:
        """In order; each may count on free pages that those before it could not use."""
        num_free = self._cache.num_free_pages
        views = []
        for entry in self.entries:
            if not entry.is_prefill:
                room, num_pages = self._room(entry.state, num_free)
                num_free -= num_pages
                views.append(_view(entry.state, room))
        return tuple(views)

    def _room(self, state: SequenceState, num_free: int) -> tuple[int, int]:
        """Draft tokens that could be of use and have slots, and the free pages that they would take."""
        wanted = min(state.max_tokens - state.num_output - 1, self._limits.max_draft_tokens)
        num_spare = self._cache.num_spare_slots(state.id) - 1  # one is the newest token's
        if wanted <= num_spare:
            return wanted, 0
        page_size = self._cache.page_size
        num_pages = min(num_free, -(-(wanted - num_spare) // page_size))
        return min(wanted, num_spare + num_pages * page_size), num_pages


def _view(state: SequenceState, room: int) -> SequenceView:
    request = state.request
    return SequenceView(
        sequence=state.id,
        length=state.length,
        room=room,
        namespace=request.namespace,
        task_class=request.task_class,
        num_speculative_tokens=request.num_speculative_tokens,
    )
