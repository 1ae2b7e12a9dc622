"""Where the time of an engine's step goes, part by part, and how near each part is to what the machine can do.

A part's limit is the longer of two times: its bytes at the memory's best bandwidth, its products at the arithmetic's
best rate. Both are measured in the same run as the parts, in the same rounds.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from paceline import _native
from paceline.runtime.native import NativeRuntime
from paceline.runtime.profile import Profile
from paceline.runtime.work import ModelWork, PartWork, Work

ROWS = (1, 4, 8, 16)
"""The sizes of step that are taken apart, at the shortest context; at the others it is one row."""
_SEED = 2
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """What all threads together do in a second at best: bytes read, products of codes, float32 multiply-adds."""

    bandwidth: float
    code_rate: float
    float_rate: float

    @classmethod
    def of(cls, profile: Profile, roofline: "Roofline") -> Self:
        """Of a run that measured both."""
        return cls(profile.bandwidth, roofline.code_rate, roofline.float_rate)

    def reading(self, work: Work) -> float:
        """Seconds."""
        return work.num_bytes / self.bandwidth

    def multiplying(self, work: Work) -> float:
        """Seconds."""
        return work.code_products / self.code_rate + work.float_products / self.float_rate

    def limit(self, work: Work) -> float:
        return max(self.reading(work), self.multiplying(work))

    def bound(self, work: Work) -> Literal["bytes", "arithmetic"]:
        """Which of the two holds."""
        return "bytes" if self.reading(work) >= self.multiplying(work) else "arithmetic"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a step. `seconds` is its share of the step's time: what threads spend on it, divided by the threads.

    `waiting`: what they wait at the ends of its phases, which is not in `seconds`.
    """

    name: str
    seconds: float
    waiting: float = 0.0
    work: Work = field(default_factory=Work)
    shape: str = ""
    types: str = ""

    @property
    def has_limit(self) -> bool:
        """True for products and attention; what only reads a little is limited by neither."""
        return self.work.multiply_adds > 0


@dataclass(frozen=True, slots=True)
class Step:
    """A step of `rows` rows behind `context` cached tokens. The seconds of its parts add up to `seconds`.

    `forward`: the seconds of its native forward.
    """

    rows: int
    context: int
    seconds: float
    forward: float
    parts: tuple[Part, ...]

    @property
    def work(self) -> Work:
        return sum((part.work for part in self.parts), Work())


@dataclass(frozen=True, slots=True)
class Roofline:
    """`steps`: one for each of `ROWS` at the shortest context, then one of one row at each other context."""

    code_rate: float
    float_rate: float
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Nanoseconds of one engine step without its drafting; `sampling_ns` is the part of the acceptance rule."""

    step_ns: int
    sampling_ns: int


class Rehearsal(Protocol):
    """Runs single steps of an engine over the runtime that is measured."""

    def prepare(self, points: Sequence[tuple[int, int]]) -> None:
        """Do whatever else the steps of these (rows, context) need, so that each is one forward."""

    def __call__(self, rows: int, context: int) -> StepTimes:
        """Run a step of `rows` rows behind `context` cached tokens."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """One step: nanoseconds, and `work` and `wait` as [kinds, scopes] of all threads together."""

    times: StepTimes
    forward_ns: int
    work: NDArray[np.int64]
    wait: NDArray[np.int64]


def points(contexts: Sequence[int]) -> list[tuple[int, int]]:
    """Rows and context of every step that is measured. A step has at least one cached token behind it."""
    first, *others = sorted({max(context, 1) for context in contexts})
    return [*((rows, first) for rows in ROWS), *((1, context) for context in others)]


def measure(
    runtime: NativeRuntime, model: ModelWork, rehearse: Rehearsal, contexts: Sequence[int], rounds: int
) -> Iterator[Roofline]:
    """Yields what is known after each round; the last one counts. The pages of `runtime` are overwritten."""
    runtime.fill_pages(range(runtime.info.num_pages))
    samples: dict[tuple[int, int], list[_Sample]] = {point: [] for point in points(contexts)}
    rehearse.prepare(list(samples))
    shuffle = random.Random(_SEED)
    code_rate = float_rate = 0.0
    for _ in range(rounds):
        for point in shuffle.sample(list(samples), len(samples)):
            samples[point].append(_sample(runtime, rehearse, *point))
        code_rate = max(code_rate, runtime.code_rate(_REPEATS))
        float_rate = max(float_rate, runtime.float_rate(_REPEATS))
        steps = (_step(model.parts(*point), *point, found, runtime.num_threads) for point, found in samples.items())
        yield Roofline(code_rate, float_rate, tuple(steps))


def _sample(runtime: NativeRuntime, rehearse: Rehearsal, rows: int, context: int) -> _Sample:
    runtime.start_trace()
    try:
        times = rehearse(rows, context)
        trace = runtime.trace()
    finally:
        runtime.stop_trace()
    if trace.num_forwards != 1:
        raise RuntimeError(f"a step of {rows} rows took {trace.num_forwards} forwards; expected 1")
    return _Sample(times, trace.forward_ns, np.array(trace.work).T, np.array(trace.wait).T)


def _step(parts: Sequence[PartWork], rows: int, context: int, samples: Sequence[_Sample], num_threads: int) -> Step:
    """The mean of the middle half of the samples: unlike medians, means of parts add up to the mean of the whole."""
    ordered = sorted(samples, key=lambda sample: sample.times.step_ns)
    quarter = len(ordered) // 4
    kept = ordered[quarter : len(ordered) - quarter]
    step = float(np.mean([sample.times.step_ns for sample in kept])) / 1e9
    sampling = float(np.mean([sample.times.sampling_ns for sample in kept])) / 1e9
    forward = float(np.mean([sample.forward_ns for sample in kept])) / 1e9
    work = np.mean([sample.work for sample in kept], axis=0) / num_threads / 1e9
    wait = np.mean([sample.wait for sample in kept], axis=0) / num_threads / 1e9
    native = [_native_part(part, work, wait) for part in parts]
    waiting = sum(part.waiting for part in native)
    rest = forward - waiting - sum(part.seconds for part in native)
    others = [
        Part("waiting", waiting),
        Part("rest of the forward", rest),
        Part("sampling", sampling),
        Part("Python", step - forward - sampling),
    ]
    return Step(rows, context, step, forward, (*native, *others))


def _native_part(part: PartWork, work: NDArray[np.float64], wait: NDArray[np.float64]) -> Part:
    kind, scopes = _native.PHASE_KINDS.index(part.kind), list(part.scopes)
    return Part(
        part.name,
        float(work[kind, scopes].sum()),
        float(wait[kind, scopes].sum()),
        part.work,
        part.shape,
        part.types,
    )
