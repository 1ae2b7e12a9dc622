"""One step's work as rows: which tokens of which sequences ride in the forward, and how its results come back."""

from collections.abc import Mapping

from paceline.acceptance.base import Verification
from paceline.cache.base import SequenceCache
from paceline.controller.base import SequenceView
from paceline.engine.request import SequenceState
from paceline.proposers.base import Draft
from paceline.runtime.base import Scores, Segment
from paceline.value import value

Drafts = Mapping[int, Draft]  # by sequence; those that a proposer was asked about


@value
class BatchEntry:
    """A sequence's part in the step: `num_run` known tokens from its cached length on.

    The entry samples when its run ends with the newest token. Then draft tokens follow the run, and the row of the
    newest token and those of the draft want logits: rows `[num_run - 1, num_run + draft tokens)` of the segment.
    """

    state: SequenceState
    num_run: int
    is_prefill: bool
    is_sampling: bool

    def segment(self, draft: Draft | None, pages: tuple[int, ...]) -> Segment:
        state, num_run = self.state, self.num_run
        run = tuple(state.tokens[state.length : state.length + num_run])
        drafted, parents = (draft.tokens, draft.parents) if draft else ((), ())
        first_sampled = num_run - 1 if self.is_sampling else num_run
        return Segment(
            sequence=state.id,
            length=state.length,
            pages=pages,
            tokens=run + drafted,
            parents=tuple([num_run + parent for parent in parents]) if parents else (),  # -1 is the last row of the run
            logits_rows=tuple(range(first_sampled, num_run + len(drafted))),
        )


@value
class Batch:
    """`max_draft_tokens`: what one forward can verify for a sequence; `vocab_size`: ids from there on are padding."""

    entries: tuple[BatchEntry, ...]
    cache: SequenceCache
    max_draft_tokens: int
    vocab_size: int

    def views(self) -> list[SequenceView]:
        """What the controller may know of the sequences that decode."""
        return [self._view(entry.state) for entry in self.entries if not entry.is_prefill]

    def rows(self, drafts: Drafts) -> list[Segment]:
        """The forward's segments, with writable slots reserved behind each sequence's cached positions."""
        segments = []
        for entry in self.entries:
            sequence = entry.state.id
            draft = drafts.get(sequence)
            self.cache.reserve(sequence, entry.num_run + (len(draft.tokens) if draft else 0))
            segments.append(entry.segment(draft, self.cache.pages(sequence)))
        return segments

    def verifications(self, drafts: Drafts, scores: Scores) -> list[Verification]:
        """One for each entry that samples, in order; logits are views into `scores`."""
        verifications, begin = list[Verification](), 0
        for entry in self.entries:
            if entry.is_sampling:
                verification = self._verification(entry, drafts.get(entry.state.id), scores, begin)
                verifications.append(verification)
                begin += 1 + len(verification.draft)
        return verifications

    def _verification(self, entry: BatchEntry, draft: Draft | None, scores: Scores, begin: int) -> Verification:
        state = entry.state
        if scores.rows[begin] != (state.id, entry.num_run - 1):
            raise RuntimeError(f"result row {begin} is {scores.rows[begin]}; expected sequence {state.id}")
        drafted, parents = (draft.tokens, draft.parents) if draft else ((), ())
        return Verification(
            sequence=state.id,
            logits=scores.logits[begin : begin + 1 + len(drafted), : self.vocab_size],
            draft=drafted,
            parents=parents or tuple(range(-1, len(drafted) - 1)),
            position=len(state.tokens),
            sampler=state.sampler,
            q=draft.q.q if draft and draft.q else None,
        )

    def _view(self, state: SequenceState) -> SequenceView:
        return SequenceView(
            sequence=state.id,
            length=state.length,
            room=min(state.max_tokens - state.num_output - 1, self.max_draft_tokens),
            namespace=state.request.namespace,
            task_class=state.request.task_class,
            num_speculative_tokens=state.request.num_speculative_tokens,
        )
