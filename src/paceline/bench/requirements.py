"""What a user's own CI requires of a result, and what fell short.

    speedup>=1.5,identical=1.0            of all classes together, of every mode but "off", under every load
    code_editing:speedup>=1.5             of one class; *:speedup>=1 of each class by itself
    @ngram:4@c=1:tau>=2                   of one mode, under one load, of all classes together

Figures have the names that they have in the JSON file, with a dot in front of a part: ttft_ms.p99, memory_bytes.target.
`speedup` is judged by the figure itself, `speedup_low` by the lower end of its interval.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from paceline.bench.base import ALL
from paceline.bench.figures.latency import SLO_NAMES
from paceline.bench.result import Run, Spread
from paceline.bench.statistics import ratio
from paceline.controller import OFF
from paceline.errors import UsageError

EACH = "*"  # every task class by itself, and all of them together
SLO_PERCENTILE = "p99"  # the part of a time that a target is held against, as MLPerf Inference holds servers to theirs

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_CONDITION = re.compile(r"(?:(?P<selector>.*):)?(?P<name>[a-z0-9_.]+)(?P<operator>>=|<=|>|<|=)(?P<value>[^<>=:]+)")
_LOAD = re.compile(r"c=\d+|[\d.e+]+/s")
_SPREADS = ("ttft", "tpot", "chunk_gap", "e2e")
_PARTS = tuple(f.name for f in fields(Spread))
_MAPPINGS = ("memory_bytes", "time_share")
_FAILED = "failed_fraction"  # of the answers that were asked for, those that failed
_FIGURES = (
    *("num_blocks", "num_answers", "num_errors", "num_output_tokens"),
    *("output_tokens_per_second", "macro_tokens_per_second"),
    *("speedup", "request_speedup", "macro_speedup", "speedup_without_loops", "ceiling"),
    *("mean_acceptance_length", "mean_acceptance_length_without_loops", "draft_acceptance_rate"),
    *("identical_fraction", "looping_fraction", _FAILED),
    *("goodput", "energy_joules_per_token", "cost_per_million_tokens"),
)
_ENDS = {
    f"{name}_{end}": (f"{name}_ci", i)
    for name in ("speedup", "request_speedup")
    for i, end in enumerate(("low", "high"))
}
_ALIASES = {
    "identical": "identical_fraction",
    "tau": "mean_acceptance_length",
    "acceptance_rate": "draft_acceptance_rate",
    "tokens_per_second": "output_tokens_per_second",
    "peak_rss": "memory_bytes.peak_rss",
    **{f"{name}_{part}": f"{name}_ms.{part}" for name in _SPREADS for part in _PARTS},
}


@dataclass(frozen=True, slots=True)
class Condition:
    """`name`: a figure's full name. `mode` and `load`: None for every mode but "off", and for every load."""

    name: str
    symbol: str
    value: float
    task_class: str = ALL
    mode: str | None = None
    load: str | None = None

    def is_met(self, figure: float) -> bool:
        return _OPERATORS[self.symbol](figure, self.value)

    def __str__(self) -> str:
        places = [self.task_class if self.task_class != ALL or self.mode or self.load else "", self.mode, self.load]
        selector = "@".join(place for place in places if place is not None)
        return f"{selector + ':' if selector else ''}{self.name}{self.symbol}{self.value:.12g}"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A condition that does not hold. `run`: None where it speaks of nothing that was measured; `figure`: None where
    the run does not have it."""

    condition: Condition
    run: Run | None
    figure: float | None

    def __str__(self) -> str:
        if self.run is None:
            return f"{self.condition} is required, and nothing that was measured matches it"
        place = f"{self.run.task_class}, {self.run.mode}, {self.run.load_label}"
        if self.figure is None:
            return f"{self.condition} is required, and {place} has no {self.condition.name}"
        rounded = f"{self.figure:.6g}"
        found = repr(self.figure) if self.condition.is_met(float(rounded)) else rounded
        return f"{self.condition} is required, and {place} has {self.condition.name} {found}"


def parse_requirements(text: str) -> tuple[Condition, ...]:
    """Conditions with commas between. Raises UsageError, naming the part that is wrong."""
    return tuple(_parse_condition(part.strip()) for part in text.split(","))


def _parse_condition(part: str) -> Condition:
    match = _CONDITION.fullmatch(part)
    if match is None:
        raise UsageError(
            f"require holds {part!r:.80}; expected [CLASS][@MODE][@LOAD:]FIGURE, one of {', '.join(_OPERATORS)}, and a "
            "number, such as speedup>=1.5"
        )
    name = _ALIASES.get(match["name"], match["name"])
    if not _is_figure(name):
        raise UsageError(
            f"require holds {part!r:.80}, with the figure {match['name']!r:.40}; "
            f"expected one of {', '.join([*_ALIASES, *_ENDS, *_FIGURES, *(f'{name}.PART' for name in _MAPPINGS)])}"
        )
    value = _parse_number("require", part, match["value"])
    return Condition(name, match["operator"], value, *_parse_selector(part, match["selector"] or ""))


def _is_figure(name: str) -> bool:
    start, _, part = name.partition(".")
    if start in _MAPPINGS:
        return bool(part)
    return name in _FIGURES or name in _ENDS or name in _ALIASES.values()


def _parse_selector(part: str, selector: str) -> tuple[str, str | None, str | None]:
    task_class, *places = selector.split("@")
    loads = [place for place in places if _LOAD.fullmatch(place)]
    modes = [place for place in places if place not in loads]
    if len(loads) > 1 or len(modes) > 1 or "" in modes:
        raise UsageError(
            f"require holds {part!r:.80}; expected at most one class, one @MODE and one @LOAD in front of ':'"
        )
    return task_class or ALL, modes[0] if modes else None, loads[0] if loads else None


def parse_slo(text: str) -> dict[str, float]:
    """ "ttft=200,tpot=50", milliseconds, of `SLO_NAMES`. Raises UsageError, naming the part that is wrong."""
    targets = dict[str, float]()
    for part in (each.strip() for each in text.split(",")):
        name, found, number = part.partition("=")
        if not found or name not in SLO_NAMES:
            raise UsageError(f"slo holds {part!r:.80}; expected {', '.join(f'{name}=MS' for name in SLO_NAMES)}")
        if name in targets:
            raise UsageError(f"slo holds {name} twice; expected it once")
        targets[name] = _parse_number("slo", part, number)
        if targets[name] <= 0:
            raise UsageError(f"slo holds {part!r:.80}; expected a number of milliseconds above 0")
    return targets


def _parse_number(name: str, part: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise UsageError(f"{name} holds {part!r:.80}; expected a number behind the sign, not {text!r:.40}")
    return number


def slo_conditions(slo: Mapping[str, float]) -> tuple[Condition, ...]:
    """What targets require of a run: that 99 of 100 answers meet each of them."""
    return tuple(Condition(f"{name}_ms.{SLO_PERCENTILE}", "<=", most) for name, most in slo.items())


def with_failures(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Failed answers are in no figure, so most conditions would hold without them: where there are any, at most one
    answer in 100 may have failed, unless a condition speaks of failures itself."""
    is_said = any(condition.name in (_FAILED, "num_errors") for condition in conditions)
    return tuple(conditions) if is_said or not conditions else (*conditions, Condition(_FAILED, "<=", 0.01))


def find_shortfalls(runs: Sequence[Run], conditions: Iterable[Condition]) -> list[Shortfall]:
    """Every run that does not meet a condition that speaks of it, and every condition that speaks of none."""
    shortfalls = []
    for condition in conditions:
        matching = _matching(runs, condition)
        if not matching:
            shortfalls.append(Shortfall(condition, None, None))
        for run in matching:
            figure = figure_of(run, condition.name)
            if figure is None or not condition.is_met(figure):
                shortfalls.append(Shortfall(condition, run, figure))
    return shortfalls


def _matching(runs: Sequence[Run], condition: Condition) -> list[Run]:
    """Without a mode, "off" is the yardstick and not meant, unless there is nothing else."""
    found = [
        run
        for run in runs
        if condition.task_class in (EACH, run.task_class) and condition.load in (None, run.load_label)
    ]
    if condition.mode is not None:
        return [run for run in found if run.mode == condition.mode]
    return [run for run in found if run.mode != OFF] or found


def figure_of(run: Run, name: str) -> float | None:
    """By its full name; None where the run does not have it."""
    if name in _ENDS:
        field, end = _ENDS[name]
        interval: tuple[float, float] | None = getattr(run, field)
        return None if interval is None else interval[end]
    if name == _FAILED:
        return ratio(run.num_errors, run.num_answers + run.num_errors)
    start, _, part = name.partition(".")
    value: float | Spread | Mapping[str, float] | None = getattr(run, start)
    if isinstance(value, Spread):
        figure: float | None = getattr(value, part)
        return figure
    return value.get(part) if isinstance(value, Mapping) else value
