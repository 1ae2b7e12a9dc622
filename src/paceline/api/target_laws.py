"""The target's own distributions behind given tokens: straight from a runtime, with no scheduler, cache or proposer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance import Law
from paceline.acceptance.canonical import CanonicalSampler, create_sampler
from paceline.acceptance.noise import Stream, gumbel
from paceline.acceptance.processors import Encode
from paceline.engine import Request
from paceline.runtime.base import Runtime, Segment


@dataclass(frozen=True, slots=True)
class Closeness:
    """How close a choice was, in logits: `margin` between the two best, and `gap` from the best to the token asked
    about, infinite for one that cannot come."""

    margin: float
    gap: float


@dataclass(slots=True)
class TargetLaws:
    """Takes all pages of `runtime`: nothing else may be under way on it, and what its pages held is lost.

    The rows of an answer are computed together, as those of a prompt are.
    """

    runtime: Runtime
    banned_ids: frozenset[int] = frozenset()
    eos_ids: frozenset[int] = frozenset()
    encode: Encode | None = None
    _prompt: tuple[int, ...] = field(default=(), init=False)  # whose keys and values lie in the first pages

    def laws(self, request: Request, answer: Sequence[int]) -> Iterator[Law]:
        """For each token of `answer`, the processed distribution that it is to be drawn from given all before it."""
        sampler = self._sampler(request)
        for index, row in enumerate(self._rows(request.prompt, answer)):
            yield sampler.law(row, len(request.prompt) + index)
            sampler.extend([answer[index]])

    def closeness(self, request: Request, answer: Sequence[int], other: int | None) -> Closeness:
        """Of the choice that made the last token of `answer`, and how far from being chosen `other` was."""
        params, position = request.params, len(request.prompt) + len(answer) - 1
        is_greedy = params.temperature == 0
        row = np.array(list(self._rows(request.prompt, answer))[-1])
        # At temperature 1 and without truncation, log p is the processed logits but for a constant.
        whole = replace(params, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0) if is_greedy else params
        sampler = self._sampler(replace(request, params=whole))
        sampler.extend(list(answer[:-1]))
        law = sampler.law(row, position)
        kept = np.flatnonzero(law)
        scores = np.log(law[kept])
        if not is_greedy:
            scores = (scores + gumbel(request.sample_seed, position, kept, Stream.TARGET)) * params.temperature
        best, runner_up = sorted([*scores.tolist(), -np.inf])[:-3:-1]
        found = scores[kept == other] if other is not None else np.empty(0)
        return Closeness(float(best - runner_up), float(best - found[0]) if found.size else np.inf)

    def _sampler(self, request: Request) -> CanonicalSampler:
        params = request.params
        return create_sampler(
            params,
            seed=request.sample_seed,
            prompt=request.prompt,
            vocab_size=self.runtime.info.vocab_size,
            banned_ids=self.banned_ids,
            stop_ids=frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else self.eos_ids),
            encode=self.encode,
        )

    def _rows(self, prompt: Sequence[int], answer: Sequence[int]) -> Iterator[NDArray[np.float32]]:
        """The row of logits that decides each token of `answer`; valid until the next one is asked for."""
        info = self.runtime.info
        self._read(tuple(prompt))
        tokens, chunk = (prompt[-1], *answer[:-1]), min(info.max_rows, info.max_logits_rows)
        for begin in range(0, len(answer), chunk):
            rows = tokens[begin : begin + chunk]
            yield from self._forward(len(prompt) - 1 + begin, rows, tuple(range(len(rows))))

    def _read(self, prompt: tuple[int, ...]) -> None:
        """Bring all of `prompt` but its last token into the first pages."""
        if prompt == self._prompt:
            return
        self._prompt = ()  # until all of it is there
        chunk = self.runtime.info.max_rows
        for begin in range(0, len(prompt) - 1, chunk):
            self._forward(begin, prompt[begin : min(begin + chunk, len(prompt) - 1)], ())
        self._prompt = prompt

    def _forward(self, length: int, tokens: tuple[int, ...], logits_rows: tuple[int, ...]) -> NDArray[np.float32]:
        pages = tuple(range(-(-(length + len(tokens)) // self.runtime.info.page_size)))
        return self.runtime.forward([Segment(0, length, pages, tokens, logits_rows=logits_rows)]).logits
