"""Gathers what the engine yields for one request: pieces of text, times and speculation figures."""

from collections import deque
from itertools import groupby

from paceline.acceptance import AcceptanceRule
from paceline.api.outputs import FinishReasonName, Piece, PlannedStep, RequestOutput, SpeculationSummary, Timing, Usage
from paceline.controller import OFF
from paceline.engine import OutputTimes, Request, StepOutput, TokenLogprobs
from paceline.models import Detokenizer, Tokenizer
from paceline.telemetry import Reason, SequenceStep, SpeculationStats


class Collector:
    """One request's answer so far. Pieces wait in `pending` until somebody streams them."""

    def __init__(self, request: Request, tokenizer: Tokenizer, rule: AcceptanceRule) -> None:
        self.prompt_ids = tuple(request.prompt)
        self.pending: deque[Piece] = deque()
        self.finish_reason: FinishReasonName | None = None
        self._error: str | None = None
        self._request = request
        self._rule = rule
        self._detokenizer = Detokenizer(tokenizer, stops=request.params.stop)
        self._tokens: list[int] = []
        self._text: list[str] = []
        self._logprobs: list[TokenLogprobs] = []
        self._prompt_logprobs: list[TokenLogprobs] = []
        self._plan: list[PlannedStep] = []
        self._stats = SpeculationStats()
        self._first: OutputTimes | None = None  # of the first token
        self._last = 0.0
        self._num_reused = 0

    @property
    def num_tokens(self) -> int:
        return len(self._tokens)

    def add(self, output: StepOutput) -> None:
        if output.step is not None:
            self._add_step(output.step)
        if output.times is not None and output.tokens:
            self._first = self._first if self._first is not None else output.times
            self._last = output.times.now
            self._num_reused = output.num_reused
        self._tokens += output.tokens
        self._logprobs += output.logprobs
        self._prompt_logprobs += output.prompt_logprobs
        pieces = [
            self._piece(tuple(token for token, _ in run), is_draft)
            for is_draft, run in groupby(zip(output.tokens, output.is_draft, strict=True), key=lambda pair: pair[1])
        ]
        if output.finish_reason is not None:
            self.finish_reason, self._error = output.finish_reason.value, output.error
            rest = self._detokenizer.flush(output.stop.num_bytes if output.stop is not None else 0)
            if rest:
                self._text.append(rest)
                pieces.append(Piece(rest, (), False))
        self.pending.extend(pieces)

    def _add_step(self, step: SequenceStep) -> None:
        self._stats.add_sequence(step)
        if not self._rule.is_token_identical and step.reason is not Reason.PREFILL:
            self._plan.append(PlannedStep(step.proposer if step.drafted else OFF, step.drafted))

    def _piece(self, tokens: tuple[int, ...], is_draft: bool) -> Piece:
        text = self._detokenizer.push(tokens)
        self._text.append(text)
        return Piece(text, tokens, is_draft)

    def output(self) -> RequestOutput:
        """The answer; of a request that has not ended, what there is of it, with the finish reason "abort"."""
        params = self._request.params
        return RequestOutput(
            text="".join(self._text),
            token_ids=tuple(self._tokens),
            finish_reason=self.finish_reason if self.finish_reason is not None else "abort",
            prompt_token_ids=self.prompt_ids,
            usage=Usage(len(self.prompt_ids), len(self._tokens), self._num_reused),
            timing=self._timing(),
            speculation=self._summary(),
            error=self._error,
            sample_seed=self._request.sample_seed,
            is_lossless=self._rule.is_lossless,
            logprobs=tuple(self._logprobs) if params.logprobs is not None else None,
            prompt_logprobs=(None, *self._prompt_logprobs) if params.prompt_logprobs is not None else None,
        )

    def _timing(self) -> Timing:
        first = self._first
        if first is None:
            return Timing(0.0, 0.0, None)
        decode = self._last - first.now
        rate = (len(self._tokens) - 1) / decode if decode > 0 else None
        return Timing(first.now - first.started, decode, rate, first.started - first.arrived)

    def _summary(self) -> SpeculationSummary:
        stats = self._stats
        return SpeculationSummary(
            stats.mean_acceptance_length,
            stats.draft_acceptance_rate,
            stats.num_drafts,
            stats.num_draft_tokens,
            stats.num_accepted_tokens,
            tuple(self._plan),
        )
