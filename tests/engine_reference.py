"""What a request must yield, worked out alone: greedy, straight from a table, one token after the other."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.engine import FinishReason
from paceline.sampling_params import SamplingParams
from paceline.testing import LogitsTable


@dataclass(frozen=True)
class Answer:
    """`stop` and `num_stop_bytes`: the stop string at the end, and the bytes of text from where it begins."""

    tokens: tuple[int, ...]
    finish_reason: FinishReason
    stop: str | None = None
    num_stop_bytes: int = 0


@dataclass(frozen=True)
class Model:
    """A table and all that an engine is told about it. `texts[t]`: the bytes of token t."""

    table: LogitsTable
    vocab_size: int
    eos: Collection[int]
    banned: Collection[int]
    texts: Sequence[bytes]

    def answer(self, prompt: Sequence[int], params: SamplingParams, capacity: int) -> Answer:
        """`capacity`: tokens that prompt and answer may have together."""
        ends = set(params.stop_token_ids) | (set() if params.ignore_eos else set(self.eos))
        longest = min(capacity - len(prompt), capacity if params.max_tokens is None else params.max_tokens)
        tokens: list[int] = []
        while True:
            is_free = len(tokens) >= params.min_tokens
            tokens.append(self._next((*prompt, *tokens), set(self.banned) | (set() if is_free else ends)))
            stop, num_bytes = self._stop(tokens, params.stop) if is_free else (None, 0)
            if stop is not None or (is_free and tokens[-1] in ends):
                return Answer(tuple(tokens), FinishReason.STOP, stop, num_bytes)
            if len(tokens) == longest:
                return Answer(tuple(tokens), FinishReason.LENGTH)

    def _next(self, seen: tuple[int, ...], banned: set[int]) -> int:
        row = self.table(seen)
        return max(sorted(set(range(self.vocab_size)) - banned), key=lambda token: np.float32(row[token]))

    def _stop(self, tokens: Sequence[int], stops: Sequence[str]) -> tuple[str | None, int]:
        """Of the stop strings that the last token completes, the one that begins first, the longest of those."""
        text = b"".join(self.texts[token] for token in tokens)
        num_new = len(self.texts[tokens[-1]])
        found = []
        for stop in stops:
            wanted = stop.encode()
            for end in range(len(text) - num_new + 1, len(text) + 1):
                if text[:end].endswith(wanted):
                    found.append((end - len(wanted), -len(wanted), stop))
        if not found:
            return None, 0
        begin, _, stop = min(found)
        return stop, len(text) - begin
