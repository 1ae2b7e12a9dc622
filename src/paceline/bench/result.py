"""A benchmark's result: what a JSON file holds and every report is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paceline.bench.base import load_label

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Spread:
    """Of a figure over answers, in milliseconds. All None where there was nothing to measure."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of one task class (or "all"), mode and load.

    Speedups are against mode "off" in the same blocks, None for it itself and where it was not run: `speedup` of
    decoding (tokens per second of decoding, all tokens together), `request_speedup` of whole answers (tokens per second
    from sending to the last token), `macro_speedup` the mean over blocks of each block's `speedup`. Blocks in which an
    answer failed, in either mode, are in none of them. `*_ci`: low and high end of the 95 % interval of a paired
    bootstrap over blocks, None with fewer than five. `verdict`: "faster" or "slower" where `speedup_ci` leaves 1 out,
    else "undecided"; None for mode "off".

    `output_tokens_per_second`: all answers' tokens over the blocks' time; `macro_tokens_per_second`: the mean over
    answers of their own decoding rates. `ttft_ms`, `tpot_ms`, `e2e_ms`: over answers; TPOT is the time from the first
    chunk to the last ÷ the tokens behind the first chunk, and an answer of a single chunk has none. `chunk_gap_ms`:
    over the gaps between consecutive chunks of all answers; a chunk may hold several tokens. Percentiles interpolate
    linearly. `goodput`: answers a second that met all of the given targets; None without targets.

    `acceptance_by_position[i]`: the share of drafts in which the first i + 1 tokens stood; drafts that were shorter
    count too, as in vLLM's metric of that name. `num_draft_tokens_chosen`: from K to the share of decode steps that
    checked K draft tokens. `time_share`: of "draft", "verify" and "host". `memory_bytes`: of "target", "proposer" and
    "caches", as far as the target tells them, and "peak_rss" of the whole process, common to all modes. `ceiling`: the
    most that speculation could give at this concurrency, from v(n); None where too few n were measured.
    `identical_fraction`: of the answers that mode "off" gave too, those equal to its, letter for letter and token for
    token. `looping_fraction`: of answers that end in a repetition; `*_without_loops`: of blocks that hold none.
    `cost_per_million_tokens` in the currency of the given price per hour.
    """

    task_class: str
    mode: str
    concurrency: int | None
    request_rate: float | None
    num_blocks: int
    num_answers: int
    num_errors: int
    num_output_tokens: int
    output_tokens_per_second: float | None
    macro_tokens_per_second: float | None
    speedup: float | None
    speedup_ci: tuple[float, float] | None
    verdict: str | None
    request_speedup: float | None
    request_speedup_ci: tuple[float, float] | None
    macro_speedup: float | None
    mean_acceptance_length: float | None
    draft_acceptance_rate: float | None
    acceptance_by_position: tuple[float, ...]
    num_draft_tokens_chosen: Mapping[str, float]
    identical_fraction: float | None
    ttft_ms: Spread
    tpot_ms: Spread
    chunk_gap_ms: Spread
    e2e_ms: Spread
    goodput: float | None
    time_share: Mapping[str, float]
    memory_bytes: Mapping[str, int]
    ceiling: float | None
    looping_fraction: float | None
    speedup_without_loops: float | None
    energy_joules_per_token: float | None
    cost_per_million_tokens: float | None
    speedup_without_loops_ci: tuple[float, float] | None = None
    mean_acceptance_length_without_loops: float | None = None

    @property
    def load_label(self) -> str:
        return load_label(self.concurrency, self.request_rate)


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where an answer differs from mode "off"'s: `expected` and `found` are token ids, or pieces of
    text where the target tells no ids; None for an answer that ended there."""

    mode: str
    item: str
    turn: int
    index: int
    expected: int | str | None
    found: int | str | None
    context: str


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """A proposer at one K scored against recorded answers: no target forward was run. `predicted_speedup` of decoding,
    by the measured T(n) and the proposer's own time."""

    task_class: str
    proposer: str
    num_speculative_tokens: int
    num_answers: int
    num_tokens: int
    mean_acceptance_length: float | None
    draft_acceptance_rate: float | None
    acceptance_by_position: tuple[float, ...]
    predicted_speedup: float | None


@dataclass(frozen=True, slots=True)
class Advice:
    """For one task class: the mode to use up to `max_concurrency`, or in an open loop up to `max_request_rate` (both
    None: no measured load was too high), and why."""

    task_class: str
    mode: str
    num_speculative_tokens: int
    max_concurrency: int | None
    reason: str
    max_request_rate: float | None = None

    @property
    def limit(self) -> str | None:
        """The load up to which it is to be used, in words."""
        if self.max_concurrency is not None:
            return f"{self.max_concurrency} answers at a time"
        return None if self.max_request_rate is None else f"{self.max_request_rate:g} requests a second"


@dataclass(frozen=True, slots=True)
class BlockSums:
    """One block's sums over its answers, errors left out: enough to compute every speedup again.

    `seconds`: from the first request to the last answer. `num_decoded` and `decode_seconds`: behind each answer's first
    chunk. `request_seconds`: from sending to the last token, summed over answers. `has_loop`: an answer in it ends in a
    repetition.
    """

    index: int
    task_class: str
    mode: str
    concurrency: int | None
    request_rate: float | None
    seconds: float
    num_tokens: int
    num_decoded: int
    decode_seconds: float
    request_seconds: float
    num_errors: int
    has_loop: bool


@dataclass(frozen=True, slots=True)
class Result:
    """`provenance`: versions, machine, model, command, when. `settings`: everything that was asked for.
    `fingerprint`: what must be equal for figures to be comparable; what tells the machine (processor, threads,
    instruction set) is in its "machine", and tokens per second are compared only where that is equal too.
    `forward_ms`: T(n) by n, a string in JSON. `blocks`: each block's sums, from which `compare` computes its intervals.
    `is_complete`: not interrupted.
    """

    provenance: Mapping[str, Any]
    fingerprint: Mapping[str, Any]
    settings: Mapping[str, Any]
    runs: Sequence[Run]
    forward_ms: Mapping[str, float] = field(default_factory=dict)
    floor_ms: float | None = None
    differences: Sequence[Difference] = ()
    replay: Sequence[ReplayRun] = ()
    advice: Sequence[Advice] = ()
    blocks: Sequence[BlockSums] = ()
    notes: Sequence[str] = ()
    is_complete: bool = True
