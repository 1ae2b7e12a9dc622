"""The values that the parts of a benchmark hand to each other, and the contract of a target.

A workload is items. The runner asks a target for them, in blocks: one block is a few items of one task class, asked
under one mode and one load, and every mode gets the same blocks, in an order that is shuffled anew for each. So modes
are compared in pairs that lie close together in time. What comes out is `Block`s, from which `figures` makes `Run`s.

Times are seconds of `time.perf_counter`, unless they are said to be relative.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from paceline.controller import OFF
from paceline.sampling_params import SamplingParams
from paceline.telemetry import SpeculationStats

ALL = "all"  # the task class of a figure over all of them


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Item:
    """One conversation of a workload.

    `history` stands before the first turn. `turns`: what the user says, at least one; each is answered, and the next
    one follows the answer that the mode at hand gave. `prediction`: what the last answer may repeat. `max_tokens` of
    each answer; None leaves it to the run. `arrival`: seconds from the beginning of a recorded trace.
    """

    id: str
    task_class: str
    turns: tuple[str, ...]
    history: tuple[Message, ...] = ()
    prediction: str | None = None
    max_tokens: int | None = None
    arrival: float | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A line of a workload's file that holds no item: `line` counts from 1, `message` says what was expected."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    items: tuple[Item, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def task_classes(self) -> tuple[str, ...]:
        """In the order in which they first occur."""
        return tuple(dict.fromkeys(item.task_class for item in self.items))


@dataclass(frozen=True, slots=True)
class Mode:
    """How to speculate. `name` is unique within a run; "off" is plain decoding, with 0 draft tokens."""

    name: str
    proposer: str = OFF
    num_speculative_tokens: int = 0

    @property
    def is_off(self) -> bool:
        return self.proposer == OFF


def load_label(concurrency: int | None, request_rate: float | None) -> str:
    """Of the one that is given."""
    return f"c={concurrency}" if concurrency is not None else f"{request_rate:g}/s"


@dataclass(frozen=True, slots=True)
class Load:
    """How requests come: `concurrency` at a time, the next when one is answered (closed loop); or `request_rate` a
    second whether or not answers keep up (open loop), with gaps of a gamma distribution of the shape `burstiness`: 1 is
    Poisson, less comes in bursts. Exactly one of the first two is given.
    """

    concurrency: int | None = None
    request_rate: float | None = None
    burstiness: float = 1.0

    @property
    def label(self) -> str:
        return load_label(self.concurrency, self.request_rate)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens that arrived together, `time` seconds after the request was sent."""

    time: float
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Speculation of one answer or of a run, as `paceline.telemetry.SpeculationStats` defines it. `drafted[k]`: decode
    steps that checked k draft tokens, k = 0 included."""

    num_target_steps: int = 0
    num_emitted: int = 0
    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    per_position: tuple[int, ...] = ()
    drafted: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, stats: SpeculationStats, drafted: Mapping[int, int]) -> "Counts":
        return cls(
            num_target_steps=stats.num_target_steps,
            num_emitted=stats.num_emitted,
            num_drafts=stats.num_drafts,
            num_draft_tokens=stats.num_draft_tokens,
            num_accepted_tokens=stats.num_accepted_tokens,
            per_position=tuple(stats.per_position),
            drafted=dict(sorted(drafted.items())),
        )

    def __add__(self, other: "Counts") -> "Counts":
        positions = zip_longest(self.per_position, other.per_position, fillvalue=0)
        return Counts(
            num_target_steps=self.num_target_steps + other.num_target_steps,
            num_emitted=self.num_emitted + other.num_emitted,
            num_drafts=self.num_drafts + other.num_drafts,
            num_draft_tokens=self.num_draft_tokens + other.num_draft_tokens,
            num_accepted_tokens=self.num_accepted_tokens + other.num_accepted_tokens,
            per_position=tuple(a + b for a, b in positions),
            drafted=dict(Counter(self.drafted) + Counter(other.drafted)),
        )


@dataclass(frozen=True, slots=True)
class Ask:
    """One answer that is wanted: `messages` end with the user's."""

    messages: tuple[Message, ...]
    params: SamplingParams
    prediction: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """`chunks` in order; a chunk can be empty of text. `token_ids`: None where the target does not tell them, and then
    `text` is compared instead; `prompt_ids` likewise. `num_tokens`: the usage that the target reported, where chunks do
    not tell. `counts`: None where the target tells nothing of one answer's speculation. `error`: what went wrong, a
    sentence; such an answer has no place in any figure but the number of errors.
    """

    prompt_tokens: int
    num_tokens: int
    chunks: tuple[Chunk, ...]
    text: str
    token_ids: tuple[int, ...] | None = None
    finish_reason: str = "stop"
    counts: Counts | None = None
    error: str | None = None
    prompt_ids: tuple[int, ...] | None = None

    @property
    def ttft(self) -> float:
        """Seconds to the first token."""
        return self.chunks[0].time

    @property
    def e2e(self) -> float:
        """Seconds to the last token."""
        return self.chunks[-1].time

    @property
    def decode_seconds(self) -> float:
        return self.chunks[-1].time - self.chunks[0].time

    @property
    def num_decoded(self) -> int:
        """Tokens behind the first chunk: those that `decode_seconds` took."""
        return self.num_tokens - self.chunks[0].num_tokens


@dataclass(frozen=True, slots=True)
class Observation:
    """The answer to turn `turn` of item `item`, at its `repeat`-th time in this mode and load."""

    item: str
    turn: int
    repeat: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class StepTime:
    """Sums over the engine's steps in a block, as far as the target tells them."""

    draft_seconds: float
    verify_seconds: float
    host_seconds: float


@dataclass(frozen=True, slots=True)
class Block:
    """`index` is common to all modes: the same items were asked. `seconds`: from the first request to the last answer.
    `counts`: of the whole block, where the target tells them so and not by answer.
    """

    index: int
    task_class: str
    mode: str
    load: Load
    seconds: float
    observations: tuple[Observation, ...]
    step_time: StepTime | None = None
    energy_joules: float | None = None
    counts: Counts | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a target told of a block when it was over."""

    step_time: StepTime | None = None
    counts: Counts | None = None


class Session(ABC):
    """A target under one mode, for one block. Asks may overlap."""

    @abstractmethod
    async def answer(self, ask: Ask) -> Answer:
        """Never raises for an answer that failed: that is its `error`."""

    @abstractmethod
    async def report(self) -> Report:
        """Of everything that was answered in this session, when nothing is being answered. Not measured."""


class Target(ABC):
    """Something that answers. One session at a time."""

    @abstractmethod
    def session(self, mode: Mode) -> AbstractAsyncContextManager[Session]:
        """Get ready for `mode`; what that costs is not measured."""

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """What a result says of it, for people and for telling targets apart: plain JSON values."""

    @abstractmethod
    def memory(self) -> Mapping[str, Mapping[str, int]]:
        """By mode: bytes of "target", "proposer" and "caches", as far as they are known."""
