"""T(n) on a loaded runtime, in a few seconds: what a forward over n rows costs, and what follows from that.

Between two measured n, T is taken to be a straight line.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.bench.statistics import interpolate
from paceline.checks import check_integer
from paceline.errors import UsageError
from paceline.runtime.base import RuntimeInfo
from paceline.runtime.native import NativeRuntime
from paceline.runtime.profile import measure

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
"""The n that are measured, as far as the runtime has so many rows: drafts of one sequence, then those of several."""
DEFAULT_CONTEXT = 256
DEFAULT_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Forwards:
    """`forward_ms`: T(n) by n in milliseconds, behind `context` cached positions, each the median of all rounds.
    `floor_ms`: what reading the weights alone takes at the best bandwidth that was seen."""

    context: int
    forward_ms: Mapping[int, float]
    floor_ms: float


def measure_forwards(
    runtime: NativeRuntime, weight_bytes: int, *, context: int = DEFAULT_CONTEXT, rounds: int = DEFAULT_ROUNDS
) -> Forwards:
    """`weight_bytes`: see `paceline.runtime.profile.step_weight_bytes`. `context` is shortened to what the runtime has.

    Overwrites the first pages of the runtime, so no engine that has answered on it may be used again; a new one may.
    Takes 256 MB of memory meanwhile, so peak memory is to be read before.
    """
    check_integer("context", context, 1)
    check_integer("rounds", rounds, 1)
    info = runtime.info
    rows = _rows(info)
    context = min(context, _room(info) - rows[-1])
    *_, profile = measure(runtime, weight_bytes, [context], rounds, rows)
    (times,) = profile.contexts
    return Forwards(context, {n: times.time(n) * 1e3 for n in rows}, profile.floor * 1e3)


def forward_time(forward_ms: Mapping[int, float], n: int) -> float:
    """T(n) in milliseconds. Raises ValueError outside of what was measured."""
    time = interpolate(forward_ms, n)
    if time is None:
        raise ValueError(f"T({n}) was not measured; known are {', '.join(map(str, sorted(forward_ms))) or 'none'}")
    return time


def _room(info: RuntimeInfo) -> int:
    return min(info.max_length, info.num_pages * info.page_size)


def _rows(info: RuntimeInfo) -> tuple[int, ...]:
    most = min(info.max_rows, info.max_logits_rows, _room(info) - 1)
    rows = tuple([n for n in ROWS if n <= most])
    if not rows:
        raise UsageError(f"max_model_len is {info.max_length}; expected at least 2, to measure forwards")
    return rows
