"""A greedy draft model over any runtime, for tests of everything around proposers that keep a cache."""

from collections.abc import Sequence
from time import perf_counter_ns
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from paceline.cache.base import OutOfPagesError, SequenceCache
from paceline.proposers.base import Ask, CacheSpec, CachingProposer, Capabilities, Draft, Evidence
from paceline.runtime.base import Runtime, Segment


class TableProposer(CachingProposer):
    """Chains of the tokens that `runtime` finds likeliest. Meant for a TableModel, which notices every stale slot."""

    name: ClassVar[str] = "table"
    capabilities: ClassVar[Capabilities] = Capabilities(has_cache=True)

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._attached: SequenceCache | None = None
        self._contexts: dict[int, list[int]] = {}

    @property
    def cache_spec(self) -> CacheSpec:
        info = self._runtime.info
        max_length = min(info.max_length, info.num_pages * info.page_size)
        return CacheSpec(self._runtime, info.num_pages, info.page_size, max_length)

    def attach(self, cache: SequenceCache) -> None:
        if cache.page_size != self.cache_spec.page_size:
            raise ValueError(f"a cache with pages of {cache.page_size} slots; expected {self.cache_spec.page_size}")
        self._attached = cache

    def start(self, sequence: int, context: Sequence[int], namespace: str) -> None:  # noqa: ARG002 (the cache has it)
        if sequence in self._contexts:
            raise ValueError(f"sequence {sequence} was started and not finished")
        self._contexts[sequence] = list(context)

    def extend(self, sequence: int, tokens: Sequence[int], evidence: Evidence | None = None) -> None:  # noqa: ARG002
        self._contexts[sequence].extend(tokens)

    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        return [self._propose_one(ask) for ask in asks]

    def finish(self, sequence: int) -> None:
        self._contexts.pop(sequence, None)

    def reset(self) -> None:
        self._contexts.clear()

    @property
    def _cache(self) -> SequenceCache:
        if self._attached is None:
            raise RuntimeError(f"the proposer {self.name!r} has no cache; expected a call of attach first")
        return self._attached

    def _propose_one(self, ask: Ask) -> Draft:
        started = perf_counter_ns()
        context = self._contexts[ask.sequence]
        num_tokens = min(ask.num_tokens, self.cache_spec.max_length + 1 - len(context))
        tokens: list[int] = []
        margins: list[float] = []
        if num_tokens > 0 and self._catch_up(ask.sequence, context, num_tokens):
            length = self._cache.length(ask.sequence)
            rows = context[length:]
            while len(tokens) < num_tokens:
                logits = self._forward(ask.sequence, length, rows)
                length += len(rows)
                rows = [int(np.argmax(logits))]
                runner_up, best = np.partition(logits, -2)[-2:].tolist()
                tokens += rows
                margins.append(best - runner_up)
        cost = perf_counter_ns() - started
        return Draft(ask.sequence, tuple(tokens), margins=tuple(margins), proposer=self.name, cost_ns=cost)

    def _catch_up(self, sequence: int, context: Sequence[int], num_tokens: int) -> bool:
        """Leave at most a forward's rows of the context, reserved with those of the draft; whether there is room."""
        cache, max_rows = self._cache, self._runtime.info.max_rows
        try:
            while (num_left := len(context) - cache.length(sequence)) > max_rows:
                length = cache.length(sequence)
                cache.reserve(sequence, max_rows)
                self._forward(sequence, length, context[length : length + max_rows])
                cache.commit(sequence, range(max_rows))
            cache.reserve(sequence, num_left + num_tokens - 1)
        except OutOfPagesError:
            return False
        return True

    def _forward(self, sequence: int, length: int, tokens: Sequence[int]) -> NDArray[np.float32]:
        """The logits behind `tokens`. Rows of this draft that lie before them are seen like committed ones."""
        segment = Segment(sequence, length, self._cache.pages(sequence), tuple(tokens), logits_rows=(len(tokens) - 1,))
        return self._runtime.forward([segment]).logits[0, : self._runtime.info.vocab_size].copy()
