"""The step loop: one target forward a step over everything that is scheduled, drafts included.

Knows no text and no model file. Not thread-safe. Plain decoding is the same code with drafts of no tokens.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter_ns

from paceline.acceptance.base import AcceptanceRule, Outcome
from paceline.acceptance.greedy import GreedySampler
from paceline.cache.base import IntegrityError
from paceline.cache.paged import PagedCache
from paceline.controller.base import Controller
from paceline.engine.batch import Batch
from paceline.engine.commit import Commit, apply, decide
from paceline.engine.drafting import ProposerGroup, check_plan
from paceline.engine.record import StepTimes, build_record
from paceline.engine.request import FinishReason, Request, SequenceState, StepOutput, checked_prompt
from paceline.engine.roster import Roster
from paceline.engine.scheduler import DEFAULT_PREFILL_CHUNK, Scheduler
from paceline.engine.turn import Turn
from paceline.proposers.base import Proposer
from paceline.runtime.base import Runtime
from paceline.telemetry.base import StepRecord


class Engine:
    """`eos_token_ids`: the model's end-of-text tokens. `banned_token_ids`: ids that no answer may hold.
    `records`: called with every StepRecord; it must not raise.

    A step that raises in its forward or before it, by an interrupt for example, has committed nothing and may be tried
    again. One that raises later ends the sequences that were in it: nobody can tell what their callers have missed.

    One caller at a time. Only `abort` may come at any moment, from a finaliser or another thread too: in the middle of
    other work it is noted and carried out when that work is done.
    """

    def __init__(
        self,
        runtime: Runtime,
        controller: Controller,
        proposers: Iterable[Proposer],
        rule: AcceptanceRule,
        *,
        eos_token_ids: Iterable[int] = (),
        banned_token_ids: Iterable[int] = (),
        prefill_chunk: int = DEFAULT_PREFILL_CHUNK,
        records: Callable[[StepRecord], None] | None = None,
    ) -> None:
        info = runtime.info
        self._runtime = runtime
        self._controller = controller
        self._proposers = ProposerGroup(proposers)
        self._rule = rule
        self._cache = PagedCache(runtime, info.num_pages, info.page_size)
        self._scheduler = Scheduler(self._cache, info, prefill_chunk)
        self._max_length = min(info.max_length, info.num_pages * info.page_size)
        self._eos_ids = frozenset(eos_token_ids)
        self._sampler = GreedySampler(info.vocab_size, banned_token_ids)
        self._records = records
        self._num_requests = 0
        self._num_steps = 0
        self._roster = Roster(self._scheduler, self._proposers, self._cache)
        self._turn = Turn(self._roster.end, self._roster.repair)

    @property
    def max_length(self) -> int:
        """The most tokens that prompt and answer may have together, with speculation or without."""
        return self._max_length

    @property
    def has_unfinished(self) -> bool:
        return len(self._scheduler) > 0

    @property
    def running(self) -> list[int]:
        """The sequences that the next step goes on with, or begins: those running, and the first in the queue."""
        return self._scheduler.next_sequences()

    @property
    def num_free_pages(self) -> int:
        return self._cache.num_free_pages

    @property
    def finish_counts(self) -> Mapping[FinishReason, int]:
        """How many sequences have ended for which reason."""
        return self._roster.finish_counts

    def add_request(self, request: Request) -> int:
        """Queue `request`; returns the id of its sequence. Raises UsageError for one that could not run."""
        return self._turn.take(lambda: self._add(request))

    def step(self) -> list[StepOutput]:
        """Run one forward and return what it yields; nothing for a sequence whose prompt is still being read."""
        return self._turn.take(self._step)

    def abort(self, sequence: int) -> StepOutput | None:
        """End `sequence` and free what it holds; None if it is unknown, has ended, or will be ended in a moment."""
        was_known = self._scheduler.find(sequence) is not None
        self._turn.withdraw(sequence)
        is_ended = was_known and self._scheduler.find(sequence) is None
        return StepOutput(sequence, finish_reason=FinishReason.ABORT) if is_ended else None

    @property
    def sequences(self) -> list[int]:
        """All sequences that have not ended."""
        return self._scheduler.sequences()

    def num_emitted(self, sequence: int) -> int | None:
        """How many tokens `sequence` has been given so far; None if it is unknown or has ended."""
        state = self._scheduler.find(sequence)
        return None if state is None else state.num_output

    def _add(self, request: Request) -> int:
        vocab_size = self._runtime.info.vocab_size
        prompt = checked_prompt(request, vocab_size, self._max_length)
        params, capacity = request.params, self._max_length - len(prompt)
        sequence, self._num_requests = self._num_requests, self._num_requests + 1
        self._scheduler.add(
            SequenceState(
                id=sequence,
                request=request,
                tokens=prompt,
                num_prompt=len(prompt),
                max_tokens=capacity if params.max_tokens is None else min(params.max_tokens, capacity),
                stop_ids=frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else self._eos_ids),
                sampler=self._sampler,
            )
        )
        return sequence

    def _step(self) -> list[StepOutput]:
        started = perf_counter_ns()
        batch = self._scheduler.schedule()
        if not batch.entries:
            return []
        views = batch.views()
        plan = check_plan(self._controller.plan(views), views)
        before = perf_counter_ns()
        drafts = self._proposers.propose(plan)
        draft_ns = perf_counter_ns() - before
        segments = batch.rows(drafts)
        before = perf_counter_ns()
        scores = self._runtime.forward(segments)
        times = StepTimes(started, draft_ns, verify_ns=perf_counter_ns() - before)
        outcomes = [self._rule.accept(verification) for verification in batch.verifications(drafts, scores)]
        try:
            commits = self._commit(batch, outcomes)
            self._observe(build_record(self._num_steps, plan, drafts, commits, times))
            return [_output(commit) for commit in commits if commit.tokens or commit.finish_reason]
        except BaseException:
            for entry in batch.entries:
                self._roster.end(entry.state.id)
            raise

    def check_integrity(self) -> None:
        """Raise IntegrityError unless pages, lengths and tokens agree. For use between steps."""
        self._cache.check_integrity()
        for state in self._scheduler.running:
            cached = self._cache.length(state.id)
            if state.length != cached or (not state.is_prefilling and cached != len(state.tokens) - 1):
                raise IntegrityError(
                    f"sequence {state.id} has {len(state.tokens)} tokens, {state.length} of them cached; "
                    f"its cache says {cached}"
                )
        if not self.has_unfinished and self.num_free_pages != self._runtime.info.num_pages:
            raise IntegrityError(f"no sequence is left and only {self.num_free_pages} pages are free")

    def _commit(self, batch: Batch, outcomes: Sequence[Outcome]) -> list[Commit]:
        by_sequence = {outcome.sequence: outcome for outcome in outcomes}
        commits = [decide(entry, by_sequence.get(entry.state.id)) for entry in batch.entries]
        for commit in commits:
            apply(commit, self._cache, self._proposers)
            if commit.finish_reason is not None:
                self._scheduler.remove(commit.entry.state.id)
                self._roster.finish_counts[commit.finish_reason] += 1
        return commits

    def _observe(self, record: StepRecord) -> None:
        self._num_steps += 1
        self._controller.observe(record)
        if self._records is not None:
            self._records(record)


def _output(commit: Commit) -> StepOutput:
    num_own = len(commit.tokens) - commit.num_draft
    is_draft = (True,) * commit.num_draft + (False,) * num_own
    return StepOutput(commit.entry.state.id, commit.tokens, is_draft, commit.finish_reason)
