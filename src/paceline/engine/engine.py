"""The step loop: one target forward a step over everything that is scheduled, drafts included.

Knows no text and no model file. Not thread-safe. Plain decoding is the same code with drafts of no tokens.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count

from paceline.acceptance.base import AcceptanceRule
from paceline.acceptance.processors import Encode
from paceline.cache.base import IntegrityError
from paceline.cache.coordinator import CacheCoordinator
from paceline.cache.paged import PagedCache
from paceline.controller.base import Controller
from paceline.engine.admission import Admission, TokenText
from paceline.engine.batch import Batch
from paceline.engine.commit import Commit, apply, decide_all
from paceline.engine.drafting import ProposerGroup, check_plan
from paceline.engine.health import Health
from paceline.engine.options import EngineOptions, Limits
from paceline.engine.output import FinishReason, StepOutput
from paceline.engine.record import StepClock, build_record, outputs_of
from paceline.engine.request import Request
from paceline.engine.roster import Roster
from paceline.engine.scheduler import Scheduler
from paceline.engine.stats import EngineStats
from paceline.engine.turn import Turn
from paceline.proposers.base import Proposer
from paceline.runtime.base import Runtime
from paceline.telemetry.base import StepRecord


class Engine:
    """Serves many requests at once. `eos_token_ids`: the model's end-of-text tokens. `banned_token_ids`: ids that no
    answer may hold. `token_text`: the bytes that a token adds to the text, for stop strings. `encode`: from text to
    tokens, for bad words. `records`: called with every StepRecord; it must not raise.

    A step that raises in its forward or before it, by an interrupt for example, has committed nothing and may be tried
    again. One that raises later ends the sequences that were in it: nobody can tell what their callers have missed.

    One caller at a time. Only `abort`, `preempt`, `hold` and `resume` may come at any moment, from a finaliser or
    another thread too: in the middle of a step the first two are noted and carried out when it is done, and what it
    computed for such a sequence is dropped.
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
        token_text: TokenText | None = None,
        encode: Encode | None = None,
        options: EngineOptions | None = None,
        records: Callable[[StepRecord], None] | None = None,
    ) -> None:
        info, options = runtime.info, options if options is not None else EngineOptions()
        self._runtime = runtime
        self._controller = controller
        self._proposers = ProposerGroup(proposers)
        self._rule = rule
        target = PagedCache(runtime, info.num_pages, info.page_size)
        self._cache = CacheCoordinator(target, self._proposers.make_caches(), reuses_prefixes=options.reuses_prefixes)
        capacity = info.num_pages * info.page_size
        self._max_length = min(info.max_length, capacity)
        self._admission = Admission(
            info.vocab_size, self._max_length, eos_token_ids, banned_token_ids, token_text, encode
        )
        limits = Limits.of(options, info, is_drafting=len(self._proposers) > 0)
        self._scheduler = Scheduler(self._cache, limits, info.vocab_size, capacity)
        self._records = records
        self._ids = count()
        self._num_steps = 0
        self._roster = Roster(self._scheduler, self._proposers, self._cache)
        self._turn = Turn(self._roster.repair)
        self._health = Health()

    @property
    def max_length(self) -> int:
        """The most tokens that prompt and answer may have together, with speculation or without."""
        return self._max_length

    @property
    def has_unfinished(self) -> bool:
        return len(self._scheduler) > 0

    @property
    def has_work(self) -> bool:
        """Whether a step would find something to do: there are sequences, and not all of them are held."""
        return self._scheduler.has_work

    @property
    def sequences(self) -> list[int]:
        """All sequences that have not ended."""
        return self._scheduler.sequences()

    @property
    def num_free_pages(self) -> int:
        """Pages that a sequence could get, those included whose contents are kept for reuse."""
        return self._cache.num_free_pages

    @property
    def is_sound(self) -> bool:
        """False once a check of integrity has failed; from then on every request is refused."""
        return self._health.is_sound

    def stats(self) -> EngineStats:
        return EngineStats(
            num_running=len(self._scheduler.running),
            num_waiting=len(self._scheduler.waiting),
            num_steps=self._num_steps,
            num_preemptions=self._scheduler.num_preemptions,
            num_integrity_failures=self._health.num_failures,
            finish_counts=dict(self._roster.finish_counts),
        )

    def add_request(self, request: Request) -> int:
        """Queue `request`; returns the id of its sequence.

        Raises UsageError for one that could not run, UnsoundEngineError where no answer could be trusted.
        """
        self._health.require()
        other = None if request.fork_of is None else self._scheduler.find(request.fork_of)
        state = self._admission.state(next(self._ids), request, other)
        self._turn.take(lambda: self._scheduler.add(state))
        return state.id

    def step(self) -> list[StepOutput]:
        """Run one forward and return what it yields; nothing for a sequence whose prompt is still being read."""
        return self._turn.take(self._step)

    def abort(self, sequence: int) -> StepOutput | None:
        """End `sequence` and free what it holds; None if it is unknown, has ended, or will be ended in a moment."""
        was_known = self._scheduler.find(sequence) is not None
        self._turn.intervene(sequence, self._roster.end)
        is_ended = was_known and self._scheduler.find(sequence) is None
        return StepOutput(sequence, finish_reason=FinishReason.ABORT) if is_ended else None

    def preempt(self, sequence: int) -> None:
        """Take the pages of a running sequence and let it wait; it is computed again later, to the same tokens."""
        self._turn.intervene(sequence, self._scheduler.preempt)

    def hold(self, sequence: int) -> None:
        """Leave `sequence` out of steps until `resume`: its consumer is behind. It gives way to others first."""
        self._set_held(sequence, True)

    def resume(self, sequence: int) -> None:
        self._set_held(sequence, False)

    def num_emitted(self, sequence: int) -> int | None:
        """How many tokens `sequence` has been given so far; None if it is unknown or has ended."""
        state = self._scheduler.find(sequence)
        return None if state is None else state.num_output

    def check_integrity(self) -> None:
        """Raise IntegrityError unless pages, lengths and tokens agree. For use between steps."""
        self._roster.check_integrity(self._runtime.info.num_pages)

    def _set_held(self, sequence: int, is_held: bool) -> None:
        state = self._scheduler.find(sequence)
        if state is not None:
            state.is_held = is_held

    def _step(self) -> list[StepOutput]:
        clock = StepClock()
        batch = self._schedule()
        if not batch.entries:
            return []
        view = batch.view()
        plan = check_plan(self._controller.plan(view), view)
        clock.begin_draft()
        drafts = self._proposers.propose(plan, view, self._cache)
        drafts = self._proposers.legal(drafts, batch.entries, self._rule)
        clock.end_draft()
        segments = batch.rows(drafts)
        clock.begin_verify()
        scores = self._runtime.forward(segments)
        clock.end_verify()
        withdrawn = self._turn.noted()  # what was computed for these is late: they have ended, or will start again
        outcomes = [self._rule.accept(each) for each in batch.verifications(drafts, scores, withdrawn)]
        entries = [entry for entry in batch.entries if entry.state.id not in withdrawn]
        commits = decide_all(entries, outcomes, batch.logits(drafts, scores))
        try:
            self._apply(commits)
            record = build_record(self._num_steps, batch, plan, drafts, commits, clock)
            self._observe(record)
            return outputs_of(commits, record)
        except BaseException:
            for entry in entries:
                self._roster.end(entry.state.id)
            raise

    def _schedule(self) -> Batch:
        try:
            batch = self._scheduler.schedule()
        except IntegrityError as error:
            self._health.fail(error)
            raise
        if not self.has_unfinished:
            self._health.examine(self.check_integrity)
        return batch

    def _apply(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            apply(commit, self._cache, self._proposers)
            if commit.finish_reason is not None:
                self._scheduler.remove(commit.entry.state.id)
                self._roster.finish_counts[commit.finish_reason] += 1

    def _observe(self, record: StepRecord) -> None:
        self._num_steps += 1
        self._controller.observe(record)
        if self._records is not None:
            self._records(record)
        if not self.has_unfinished:
            self._health.examine(self.check_integrity)
