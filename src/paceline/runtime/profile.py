"""Measures what speculation lives on: the time T(n) of a forward over n rows, and the memory's read bandwidth.

Works on synthetic pages, so a context costs no prefill. Times of this kind of machine drift by a third within a minute,
so every round measures everything once, in a new order, and only figures of one run are set against each other.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

from paceline.models import Model, ModelConfig, TensorRole
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeRuntime

MAX_ROWS = 16
"""T(n) is measured for n = 1 … MAX_ROWS: the rows that one pass over the weights serves."""
_SEED = 1
_ROOM = MAX_ROWS + 1  # positions behind a context: the rows, and the token that the last of them decides


@dataclass(frozen=True, slots=True)
class ContextTimes:
    """The seconds of every forward behind `length` cached positions: `samples[n]` holds one for each round."""

    length: int
    samples: dict[int, list[float]]

    def time(self, rows: int) -> float:
        return median(self.samples[rows])

    def spread(self, rows: int) -> tuple[float, float]:
        """The first and the third quartile."""
        if len(self.samples[rows]) == 1:
            return self.samples[rows][0], self.samples[rows][0]
        low, _, high = quantiles(self.samples[rows], n=4, method="inclusive")
        return low, high

    def v(self, rows: int) -> float:
        return self.time(rows) / self.time(1)

    def ceiling(self, rows: int) -> float:
        """The speedup over plain decoding if all of `rows` - 1 draft tokens were accepted and drafting cost nothing."""
        return rows / self.v(rows)

    @property
    def best_rows(self) -> int:
        return max(self.samples, key=self.ceiling)


@dataclass(frozen=True, slots=True)
class Profile:
    """`bandwidth`: bytes per second, the best attempt. `weight_bytes`: of the file's weights that one step reads."""

    bandwidth: float
    weight_bytes: int
    contexts: tuple[ContextTimes, ...]

    @property
    def floor(self) -> float:
        """Seconds that reading the weights alone takes: no forward can be faster."""
        return self.weight_bytes / self.bandwidth


def step_weight_bytes(model: Model) -> int:
    """Bytes of the model's weights that one step reads: all layers, the last norm and the head.

    Of an embedding that is not the head too, a step reads one row for each token: nothing to speak of.
    """
    unread = set() if model.config.is_head_tied else {TensorRole("embedding")}
    return sum(info.num_bytes for role, info in model.tensors.items() if role not in unread)


def capacity(config: ModelConfig, contexts: Sequence[int]) -> int:
    """The `max_length` that a runtime needs for measuring at these contexts."""
    return min(config.context_length, max([1, *contexts]) + _ROOM)


def fits(config: ModelConfig, context: int) -> bool:
    return max(1, context) + _ROOM <= config.context_length


def measure(
    runtime: NativeRuntime,
    weight_bytes: int,
    contexts: Sequence[int],
    rounds: int,
    rows: Sequence[int] = tuple(range(1, MAX_ROWS + 1)),
) -> Iterator[Profile]:
    """Yields what is known after each round; the last one counts. `rows`: the n of T(n), 1 among them.

    The first pages of `runtime` are overwritten, as many as the longest context and the most rows take: no engine that
    has computed anything there may go on afterwards.
    """
    num_positions = max(contexts) + max(rows)
    pages = tuple(range(-(-num_positions // runtime.info.page_size)))
    runtime.fill_pages(pages)
    shuffle = random.Random(_SEED)
    times = tuple(ContextTimes(context, {n: [] for n in rows}) for context in contexts)
    _forward(runtime, pages, 0, 1)  # wakes the threads and touches what is allocated on first use
    bandwidth = 0.0
    for _ in range(rounds):
        points = [(context, n) for context in times for n in context.samples]
        shuffle.shuffle(points)
        for context, n in points:
            context.samples[n].append(_forward(runtime, pages, context.length, n))
        bandwidth = max(bandwidth, runtime.read_bandwidth(repeats=3))
        yield Profile(bandwidth, weight_bytes, times)


def _forward(runtime: NativeRuntime, pages: tuple[int, ...], context: int, rows: int) -> float:
    """Seconds of one forward in which every row wants logits, as a verification step's do."""
    tokens = tuple((7 * row + 1) % runtime.info.vocab_size for row in range(rows))
    segment = Segment(sequence=0, length=context, pages=pages, tokens=tokens, logits_rows=tuple(range(rows)))
    start = perf_counter()
    runtime.forward([segment])
    return perf_counter() - start
