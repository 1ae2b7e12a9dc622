"""Gathers what the engine yields for one request: pieces of text, times and speculation figures."""

from collections import deque
from itertools import groupby
from time import perf_counter

from paceline.api.outputs import FinishReasonName, Piece, RequestOutput, SpeculationSummary, Timing, Usage
from paceline.engine import StepOutput
from paceline.models import Detokenizer, Tokenizer
from paceline.telemetry import SequenceStep, SpeculationStats


class Collector:
    """One request's answer so far. Pieces wait in `pending` until somebody streams them."""

    def __init__(self, prompt_ids: tuple[int, ...], tokenizer: Tokenizer) -> None:
        self.prompt_ids = prompt_ids
        self.pending: deque[Piece] = deque()
        self.finish_reason: FinishReasonName | None = None
        self._detokenizer = Detokenizer(tokenizer)
        self._tokens: list[int] = []
        self._text: list[str] = []
        self._stats = SpeculationStats()
        self._started: float | None = None
        self._first: float | None = None
        self._last: float | None = None

    @property
    def num_tokens(self) -> int:
        return len(self._tokens)

    def begin_step(self) -> None:
        """To be called before each engine step in which this request may take part."""
        if self._started is None:
            self._started = perf_counter()

    def add_record(self, step: SequenceStep) -> None:
        self._stats.add_sequence(step)

    def add(self, output: StepOutput) -> None:
        now = perf_counter()
        if output.tokens:
            self._first = self._first if self._first is not None else now
            self._last = now
            self._tokens += output.tokens
        pieces = [
            self._piece(tuple(token for token, _ in run), is_draft)
            for is_draft, run in groupby(zip(output.tokens, output.is_draft, strict=True), key=lambda pair: pair[1])
        ]
        if output.finish_reason is not None:
            self.finish_reason = output.finish_reason.value
            rest = self._detokenizer.flush()
            if rest:
                self._text.append(rest)
                pieces.append(Piece(rest, (), False))
        self.pending.extend(pieces)

    def _piece(self, tokens: tuple[int, ...], is_draft: bool) -> Piece:
        text = self._detokenizer.push(tokens)
        self._text.append(text)
        return Piece(text, tokens, is_draft)

    def output(self) -> RequestOutput:
        """The answer; of a request that has not ended, what there is of it, with the finish reason "abort"."""
        return RequestOutput(
            text="".join(self._text),
            token_ids=tuple(self._tokens),
            finish_reason=self.finish_reason if self.finish_reason is not None else "abort",
            prompt_token_ids=self.prompt_ids,
            usage=Usage(len(self.prompt_ids), len(self._tokens)),
            timing=self._timing(),
            speculation=self._summary(),
        )

    def _timing(self) -> Timing:
        if self._started is None or self._first is None or self._last is None:
            return Timing(0.0, 0.0, None)
        decode = self._last - self._first
        rate = (len(self._tokens) - 1) / decode if decode > 0 else None
        return Timing(self._first - self._started, decode, rate)

    def _summary(self) -> SpeculationSummary:
        stats = self._stats
        return SpeculationSummary(
            stats.mean_acceptance_length,
            stats.draft_acceptance_rate,
            stats.num_drafts,
            stats.num_draft_tokens,
            stats.num_accepted_tokens,
        )
