"""Gathers what the engine yields for one request: pieces of text, times and speculation figures."""

from collections import deque
from collections.abc import Sequence
from itertools import groupby

from paceline.api.outputs import FinishReasonName, Piece, RequestOutput, SpeculationSummary, Timing, Usage
from paceline.engine import OutputTimes, StepOutput
from paceline.models import Detokenizer, Tokenizer
from paceline.telemetry import SpeculationStats


class Collector:
    """One request's answer so far. Pieces wait in `pending` until somebody streams them."""

    def __init__(self, prompt_ids: tuple[int, ...], tokenizer: Tokenizer, stops: Sequence[str] = ()) -> None:
        self.prompt_ids = prompt_ids
        self.pending: deque[Piece] = deque()
        self.finish_reason: FinishReasonName | None = None
        self._detokenizer = Detokenizer(tokenizer, stops=stops)
        self._tokens: list[int] = []
        self._text: list[str] = []
        self._stats = SpeculationStats()
        self._first: OutputTimes | None = None  # of the first token
        self._last = 0.0
        self._num_reused = 0

    @property
    def num_tokens(self) -> int:
        return len(self._tokens)

    def add(self, output: StepOutput) -> None:
        if output.step is not None:
            self._stats.add_sequence(output.step)
        if output.times is not None and output.tokens:
            self._first = self._first if self._first is not None else output.times
            self._last = output.times.now
            self._num_reused = output.num_reused
        self._tokens += output.tokens
        pieces = [
            self._piece(tuple(token for token, _ in run), is_draft)
            for is_draft, run in groupby(zip(output.tokens, output.is_draft, strict=True), key=lambda pair: pair[1])
        ]
        if output.finish_reason is not None:
            self.finish_reason = output.finish_reason.value
            rest = self._detokenizer.flush(output.stop.num_bytes if output.stop is not None else 0)
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
            usage=Usage(len(self.prompt_ids), len(self._tokens), self._num_reused),
            timing=self._timing(),
            speculation=self._summary(),
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
        )
