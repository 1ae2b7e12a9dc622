"""An engine over a table, everything that was asked of it, and what must be true after every move."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from random import Random

from engine_parts import CapriciousController, HookedRule, WatchedModel, WatchedProposer, informed_script
from engine_reference import Answer, Model

from paceline.controller import Controller, FixedController, OffController
from paceline.engine import Engine, EngineOptions, FinishReason, Request, StepOutput
from paceline.proposers import NgramProposer, Proposer
from paceline.telemetry import StepRecord
from paceline.testing import LogitsTable, ScriptedController, ScriptedProposer, TableModel, seeded_table

TEXTS = (b"a", b"b", b"ab", b"\xc3", b"\xa4b", b"")
MOMENTS = ("before", "after", "accept", "record")
DRAFTING = ("none", "fixed", "scripted", "ngram", "table", "any")
MAX_STEPS = 3000


class Interrupt(BaseException):
    """Strikes in the middle of a step."""


@dataclass(frozen=True)
class Setup:
    """`drafting`: one of DRAFTING. `draft_length`: the context of the draft model."""

    seed: int = 0
    vocab_size: int = 4
    order: int | None = 3
    page_size: int = 3
    num_pages: int = 12
    max_length: int = 24
    max_rows: int = 12
    max_logits_rows: int = 9
    max_num_seqs: int = 4
    prefill_chunk: int = 7
    mixed_prefill_chunk: int = 3
    max_draft_tokens: int | None = 5
    reuses_prefixes: bool = True
    drafting: str = "any"
    share_right: float = 0.8
    draft_length: int = 15
    draft_pages: int = 12
    eos: tuple[int, ...] = (0,)

    def controller(self) -> Controller:
        random = Random(self.seed)
        if self.drafting == "none":
            return OffController()
        if self.drafting == "fixed":
            return FixedController("scripted", 3)
        if self.drafting == "any":
            return CapriciousController(("scripted", "ngram", "table"), random)
        return ScriptedController(self.drafting, lambda _: random.choice((0, 0, 1, 2, 3, 5, 8)))

    def options(self) -> EngineOptions:
        return EngineOptions(
            max_num_seqs=self.max_num_seqs,
            prefill_chunk=self.prefill_chunk,
            mixed_prefill_chunk=self.mixed_prefill_chunk,
            max_draft_tokens=self.max_draft_tokens,
            reuses_prefixes=self.reuses_prefixes,
        )


@dataclass
class Asked:
    """A request and what has come of it. `is_withdrawn`: an abort is under way. `is_lost`: an interrupt behind a commit
    ended it, perhaps with an output that nobody got."""

    request: Request
    expected: Answer
    emitted: list[int] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    is_held: bool = False
    is_withdrawn: bool = False
    is_lost: bool = False


class World:
    """Moves, each with the checks behind it."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        table = _remembering(seeded_table(setup.vocab_size, setup.seed, setup.order))
        self.model = Model(table, setup.vocab_size, setup.eos, (), TEXTS)
        self.runtime = WatchedModel(
            table,
            setup.vocab_size,
            self._moment,
            num_pages=setup.num_pages,
            page_size=setup.page_size,
            max_length=setup.max_length,
            max_rows=setup.max_rows,
            max_logits_rows=setup.max_logits_rows,
        )
        script = informed_script(table, setup.vocab_size, setup.seed, setup.share_right)
        self.scripted = ScriptedProposer(script)
        self.engine = Engine(
            self.runtime,
            setup.controller(),
            [self.scripted, *self._other_proposers(table)],
            HookedRule(self._moment),
            eos_token_ids=setup.eos,
            token_text=TEXTS.__getitem__,
            options=setup.options(),
            records=self._observe,
        )
        self.asked: dict[int, Asked] = {}
        self.records: list[StepRecord] = []
        self.num_shortages = 0  # preemptions that nobody asked for
        self._planned: tuple[str, str, int] | None = None  # moment, what, sequence
        self._late: set[int] = set()  # withdrawn or preempted before this step's results were there

    def _other_proposers(self, table: LogitsTable) -> Iterable[Proposer]:
        setup = self.setup
        if setup.drafting in ("ngram", "any"):
            yield NgramProposer(1, 4)
        if setup.drafting in ("table", "any"):
            other = seeded_table(setup.vocab_size, setup.seed + 1, setup.order)
            draft_table = _remembering(lambda seen: other(seen) if sum(seen) % 3 == 0 else table(seen))
            draft_model = TableModel(
                draft_table,
                setup.vocab_size,
                page_size=setup.page_size + 1,
                num_pages=setup.draft_pages,
                max_length=setup.draft_length,
                max_rows=6,
            )
            yield WatchedProposer(draft_table, draft_model)

    @property
    def unfinished(self) -> list[int]:
        return [sequence for sequence, asked in self.asked.items() if asked.finish_reason is None]

    def add(self, request: Request) -> int:
        answer = self.model.answer(request.prompt, request.params, self.engine.max_length)
        sequence = self.engine.add_request(request)
        self.asked[sequence] = Asked(request, answer)
        self.runtime.namespaces[sequence] = request.namespace
        self.check()
        return sequence

    def abort(self, sequence: int) -> None:
        output = self.engine.abort(sequence)
        assert output == StepOutput(sequence, finish_reason=FinishReason.ABORT)
        self.asked[sequence].finish_reason = FinishReason.ABORT
        self.check()

    def preempt(self, sequence: int) -> None:
        self.engine.preempt(sequence)
        self.check()

    def set_held(self, sequence: int, is_held: bool) -> None:
        (self.engine.hold if is_held else self.engine.resume)(sequence)
        self.asked[sequence].is_held = is_held
        self.check()

    def step(self, moment: str = "", what: str = "", sequence: int = -1) -> None:
        """`what`: abort, preempt or interrupt, at that moment."""
        self._planned, self._late = (moment, what, sequence) if what else None, set()
        has_work, num_records = self.engine.has_work, len(self.records)
        num_preemptions = self.engine.stats().num_preemptions + (what == "preempt")
        try:
            outputs = self.engine.step()
            assert len(self.records) == num_records + has_work, "there was work and no forward, or the other way round"
        except Interrupt:
            outputs = []
            self._after_interrupt(moment)
        for output in outputs:
            self._take(output)
        for asked in self.asked.values():
            if asked.is_withdrawn and asked.finish_reason is None:
                asked.finish_reason = FinishReason.ABORT
        self.num_shortages += max(0, self.engine.stats().num_preemptions - num_preemptions)
        self.check()

    def drain(self) -> None:
        """Everybody gets an answer, and nothing stays behind."""
        for sequence in self.unfinished:
            if self.asked[sequence].is_held:
                self.set_held(sequence, False)
        num_steps = 0
        while self.engine.has_unfinished:
            self.step()
            num_steps += 1
            assert num_steps < MAX_STEPS, "the sequences do not end"
        assert not self.unfinished
        assert self.engine.num_free_pages == self.setup.num_pages
        assert self.engine.is_sound
        for draft in self.engine._cache._drafts.values():
            assert draft.cache.num_free_pages == self.setup.draft_pages
        counts = self.engine.stats().finish_counts
        assert sum(counts.values()) == len(self.asked)
        num_lost = sum(asked.is_lost for asked in self.asked.values())
        for reason in FinishReason:
            num = sum(asked.finish_reason is reason and not asked.is_lost for asked in self.asked.values())
            assert num <= counts.get(reason, 0) <= num + num_lost

    def check(self) -> None:
        self.engine.check_integrity()
        unfinished = self.unfinished
        assert self.engine.sequences == unfinished
        followed = {sequence for sequence in unfinished if self.asked[sequence].emitted}
        for proposer in self.engine._proposers._proposers.values():
            known = proposer._indexes if isinstance(proposer, NgramProposer) else proposer._contexts  # type: ignore[attr-defined]
            assert known.keys() == followed, f"{proposer.name} follows {sorted(known)}; expected {sorted(followed)}"
        for sequence in unfinished:
            asked = self.asked[sequence]
            num = self.engine.num_emitted(sequence)
            assert num == len(asked.emitted), f"{num} tokens of sequence {sequence}, which has got {asked.emitted}"
            if asked.emitted:
                assert self.scripted.context(sequence) == (*asked.request.prompt, *asked.emitted)

    def _take(self, output: StepOutput) -> None:
        asked, sequence = self.asked[output.sequence], output.sequence
        assert asked.finish_reason is None, f"sequence {sequence} has ended and got {output}"
        assert sequence not in self._late, f"a late result of sequence {sequence} was handed out"
        assert not asked.is_held, f"sequence {sequence} is held and got {output}"
        asked.emitted += output.tokens
        asked.finish_reason = output.finish_reason
        expected, emitted = asked.expected, tuple(asked.emitted)
        if output.finish_reason is None:
            assert emitted == expected.tokens[: len(emitted)], f"sequence {sequence} says {emitted}, not {expected}"
            assert len(emitted) < len(expected.tokens), f"sequence {sequence} goes on behind {expected}"
            assert output.stop is None
            return
        stop = output.stop
        found = Answer(emitted, output.finish_reason, stop and stop.text, stop.num_bytes if stop is not None else 0)
        assert found == expected, f"sequence {sequence} ends as {found}, not {expected}"
        assert stop is None or stop.num_tokens == len(output.tokens)

    def _moment(self, moment: str) -> None:
        if moment in ("before", "after"):
            self.engine._cache.check_integrity()
        if self._planned is None or self._planned[0] != moment:
            return
        (_, what, sequence), self._planned = self._planned, None
        if what == "interrupt":
            raise Interrupt
        if moment in ("before", "after"):
            self._late.add(sequence)
        if what == "preempt":
            self.engine.preempt(sequence)
        else:
            assert self.engine.abort(sequence) is None
            self.asked[sequence].is_withdrawn = True

    def _observe(self, record: StepRecord) -> None:
        self.records.append(record)
        setup = self.setup
        num_rows = record.num_prefill_rows + record.num_decode_rows + record.num_draft_rows
        assert num_rows <= setup.max_rows
        chunk = setup.mixed_prefill_chunk if record.num_decode_rows else setup.prefill_chunk
        assert record.num_prefill_rows <= chunk
        self._moment("record")

    def _after_interrupt(self, moment: str) -> None:
        """Behind the commit nobody can tell what was missed, so the step's sequences are ended; before it, none."""
        ended = set(self.unfinished) - set(self.engine.sequences)
        in_step = {step.sequence for step in self.records[-1].sequences} if moment == "record" else set[int]()
        assert ended <= in_step
        for sequence in ended:
            self.asked[sequence].finish_reason = FinishReason.ABORT
            self.asked[sequence].is_lost = True


def _remembering(table: LogitsTable) -> LogitsTable:
    return cache(table)
