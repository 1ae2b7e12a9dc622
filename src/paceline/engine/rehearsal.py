"""Single steps of a chosen size behind a chosen context, through a real engine: for measuring, without a prefill.

The prompt's forwards are left out, so the context is whatever lies in the runtime's pages. All draft tokens stand: they
are what plain decoding said from there, asked for once.
"""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter_ns
from typing import ClassVar

import numpy as np

from paceline.acceptance.base import AcceptanceRule, Law, Outcome, Verification
from paceline.acceptance.match import MatchRule
from paceline.controller.fixed import FixedController, OffController
from paceline.engine.engine import Engine
from paceline.engine.request import Request
from paceline.proposers.base import Ask, Capabilities, Draft, Evidence, Proposer
from paceline.runtime.base import Runtime, RuntimeInfo, Scores, Segment
from paceline.runtime.roofline import StepTimes
from paceline.sampling_params import SamplingParams
from paceline.telemetry.base import StepRecord

_PROMPT_TOKEN = 0


class EngineRehearsal:
    """One step a call, each with a fresh engine: greedy, plain for one row, with a draft for more."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._answers: dict[int, tuple[int, ...]] = {}  # by context: its first tokens

    def __call__(self, rows: int, context: int) -> StepTimes:
        """Raises ValueError for less than one row or cached token, RuntimeError where they do not fit."""
        if rows < 1 or context < 1:
            raise ValueError(f"a step of {rows} rows behind {context} tokens; expected at least 1 of each")
        stage = _Stage(self._runtime, self._answer(context, rows - 1), context)
        record = stage.step()
        if record.num_decode_rows + record.num_draft_rows != rows:
            raise RuntimeError(f"the step had {record}; expected {rows} rows")
        return StepTimes(record.host_ns + record.verify_ns, stage.rule.accept_ns)

    def prepare(self, points: Sequence[tuple[int, int]]) -> None:
        """Ask for the drafts of all (rows, context) that are to come, so that a call is one forward."""
        for rows, context in points:
            self._answer(context, rows - 1)

    def _answer(self, context: int, num_tokens: int) -> tuple[int, ...]:
        known = self._answers.get(context, ())
        if len(known) < num_tokens:
            stage = _Stage(self._runtime, (), context)
            for _ in range(num_tokens):
                stage.step()
            known = self._answers[context] = stage.tokens
        return known[:num_tokens]


class _Stage:
    """An engine whose one sequence has its prompt behind it."""

    def __init__(self, runtime: Runtime, draft: tuple[int, ...], context: int) -> None:
        self._records: list[StepRecord] = []
        self.rule = _TimedRule()
        self.tokens: tuple[int, ...] = ()
        controller = FixedController(_Prompter.name, len(draft)) if draft else OffController()
        proposers = [_Prompter(draft)] if draft else []
        skipping = _SkippedPrompts(runtime)
        self._engine = Engine(skipping, controller, proposers, self.rule, records=self._records.append)
        self._engine.add_request(Request((_PROMPT_TOKEN,) * context, SamplingParams(max_tokens=None, ignore_eos=True)))
        while not self._engine.step():  # the first output is the prompt's end
            pass
        skipping.is_over = True

    def step(self) -> StepRecord:
        self.rule.accept_ns = 0
        outputs = self._engine.step()
        if not outputs:
            raise RuntimeError(f"there is no room for another step: a sequence has {self._engine.max_length} positions")
        self.tokens += outputs[0].tokens
        return self._records[-1]


class _SkippedPrompts(Runtime):
    """Answers with zeros in place of a forward until `is_over`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.is_over = False

    @property
    def info(self) -> RuntimeInfo:
        return self._runtime.info

    def forward(self, segments: Sequence[Segment]) -> Scores:
        if self.is_over:
            return self._runtime.forward(segments)
        rows = tuple((segment.sequence, row) for segment in segments for row in segment.logits_rows)
        return Scores(np.zeros((len(rows), self.info.padded_vocab_size), np.float32), rows)

    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None:
        self._runtime.copy_slots(pages, moves)

    def copy_page(self, source: int, destination: int) -> None:
        self._runtime.copy_page(source, destination)


class _TimedRule(AcceptanceRule):
    """The rule `match`, with the time that it takes."""

    name: ClassVar[str] = MatchRule.name
    is_token_identical: ClassVar[bool] = True
    is_lossless: ClassVar[bool] = True

    def __init__(self) -> None:
        self._rule = MatchRule()
        self.accept_ns = 0

    def accept_probability(self, p: Law, q: Law, token: int) -> float:
        return self._rule.accept_probability(p, q, token)

    def residual(self, p: Law, q: Law, token: int) -> Law:
        return self._rule.residual(p, q, token)

    def accept(self, verification: Verification) -> Outcome:
        start = perf_counter_ns()
        outcome = self._rule.accept(verification)
        self.accept_ns += perf_counter_ns() - start
        return outcome


class _Prompter(Proposer):
    """Says the same draft to everyone."""

    name: ClassVar[str] = "prompter"
    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(self, draft: tuple[int, ...]) -> None:
        self._draft = Draft(0, draft, proposer=self.name)

    def start(self, sequence: int, context: Sequence[int], namespace: str) -> None:
        pass

    def extend(self, sequence: int, tokens: Sequence[int], evidence: Evidence | None = None) -> None:
        pass

    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        return [
            replace(self._draft, sequence=ask.sequence, tokens=self._draft.tokens[: ask.num_tokens]) for ask in asks
        ]

    def finish(self, sequence: int) -> None:
        pass

    def reset(self) -> None:
        pass
