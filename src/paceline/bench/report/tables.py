"""The tables of a result, as values that the terminal, Markdown and HTML each show in their own way."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from paceline.bench.base import ALL
from paceline.bench.report.index import RunIndex
from paceline.bench.report.texts import MISSING, clean, interval, number, percent, ratio, shares, short_name, size
from paceline.bench.result import Advice, Difference, ReplayRun, Result, Run, Spread

Kind = Literal["key", "number", "text", "verdict", "identical"]


@dataclass(frozen=True, slots=True)
class Column:
    """`kind`: "key" names the row, "verdict" and "identical" may be shown in colour."""

    heading: str
    kind: Kind = "number"


@dataclass(frozen=True, slots=True)
class Table:
    """`rows`: clean texts, as many as columns. `groups`: how many keys at the front, equal in neighbours, tie them."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    num_groups: int = 0

    @property
    def has_figures(self) -> bool:
        """Whether there is anything in it but keys."""
        return bool(self.rows) and any(column.kind != "key" for column in self.columns)

    def without_empty(self) -> "Table":
        """Without the columns, keys excepted, that hold no figure."""
        kept = [
            place
            for place, column in enumerate(self.columns)
            if column.kind == "key" or any(row[place] != MISSING for row in self.rows)
        ]
        columns = tuple(self.columns[place] for place in kept)
        return Table(self.title, columns, tuple(tuple(row[p] for p in kept) for row in self.rows), self.num_groups)


Cell = Callable[[Run], str]
Figures = Sequence[tuple[Column, Cell]]

_KEYS: Figures = (
    (Column("load", "key"), lambda run: run.load_label),
    (Column("class", "key"), lambda run: short_name(run.task_class)),
    (Column("mode", "key"), lambda run: short_name(run.mode)),
)
_SPEEDUP: Figures = (
    (Column("tok/s"), lambda run: number(run.output_tokens_per_second)),
    (Column("speedup (95 %)"), lambda run: interval(run.speedup, run.speedup_ci)),
    (Column("verdict", "verdict"), lambda run: run.verdict or MISSING),
    (Column("ceiling"), lambda run: ratio(run.ceiling)),
)
_ACCEPTANCE: Figures = (
    (Column("τ"), lambda run: number(run.mean_acceptance_length)),
    (Column("accepted"), lambda run: percent(run.draft_acceptance_rate)),
)
_IDENTICAL: Figures = ((Column("identical", "identical"), lambda run: percent(run.identical_fraction)),)
_SPEED: Figures = (
    *_SPEEDUP,
    (Column("answers: speedup (95 %)"), lambda run: interval(run.request_speedup, run.request_speedup_ci)),
    (Column("mean of blocks' speedups"), lambda run: ratio(run.macro_speedup)),
    (Column("speedup without loops"), lambda run: ratio(run.speedup_without_loops)),
    (Column("mean of answers' tok/s"), lambda run: number(run.macro_tokens_per_second)),
    (Column("goodput, answers/s"), lambda run: number(run.goodput)),
)
_SPECULATION: Figures = (
    *_ACCEPTANCE,
    (Column("accepted by position", "text"), lambda run: " ".join(map(percent, run.acceptance_by_position)) or MISSING),
    (Column("draft tokens chosen: share of steps", "text"), lambda run: shares(_by_length(run))),
    (Column("time share", "text"), lambda run: shares(run.time_share)),
)
_ANSWERS: Figures = (
    (Column("blocks"), lambda run: f"{run.num_blocks:,}"),
    (Column("answers"), lambda run: f"{run.num_answers:,}"),
    (Column("errors"), lambda run: f"{run.num_errors:,}"),
    (Column("output tokens"), lambda run: f"{run.num_output_tokens:,}"),
    *_IDENTICAL,
    (Column("looping"), lambda run: percent(run.looping_fraction)),
    (Column("memory", "text"), lambda run: _memory(run)),
    (Column("J/token"), lambda run: number(run.energy_joules_per_token)),
    (Column("cost of 10⁶ tokens"), lambda run: number(run.cost_per_million_tokens)),
)


def _spread(name: str, of: Callable[[Run], Spread], parts: Sequence[str]) -> Figures:
    return [(Column(f"{name} {part}"), partial(_part, of, part)) for part in parts]


def _part(of: Callable[[Run], Spread], part: str, run: Run) -> str:
    return number(getattr(of(run), part))


def _latency(parts: Sequence[str]) -> Figures:
    return (
        *_spread("TTFT", lambda run: run.ttft_ms, parts),
        *_spread("TPOT", lambda run: run.tpot_ms, parts),
    )


def _by_length(run: Run) -> dict[str, float]:
    found = run.num_draft_tokens_chosen
    return {f"{length}:": found[length] for length in sorted(found, key=lambda text: (len(text), text))}


def _memory(run: Run) -> str:
    return ", ".join(f"{name} {size(found)}" for name, found in run.memory_bytes.items()) or MISSING


def _total_memory(run: Run) -> str:
    """Of target, proposer and caches; the peak of the process is another view of the same."""
    parts = [num for name, num in run.memory_bytes.items() if name != "peak_rss"]
    return size(sum(parts)) if parts else MISSING


def _of_runs(title: str, runs: Iterable[Run], figures: Figures) -> Table:
    columns = (*_KEYS, *figures)
    rows = tuple(tuple(clean(cell(run)) for _, cell in columns) for run in runs)
    return Table(title, tuple(column for column, _ in columns), rows, num_groups=2)


def summary_tables(runs: Sequence[Run]) -> tuple[Table, ...]:
    """What one reads first, each narrow enough for 80 columns where names are short."""
    memory: Figures = ((Column("memory"), _total_memory),)
    parts: dict[str, Figures] = {
        "Speed": _SPEEDUP,
        "Acceptance and text": (*_ACCEPTANCE, *_IDENTICAL, *memory),
        "Latency in ms": _latency(("p50", "p99")),
    }
    index = RunIndex(runs)
    return tuple(_of_runs(title, index, figures).without_empty() for title, figures in parts.items())


def progress_table(runs: Sequence[Run]) -> Table:
    """While it runs: the modes over all classes, at every load measured so far."""
    index = RunIndex(runs)
    shown = [run for run in index if run.task_class == index.overall]
    return _of_runs("So far", shown, (*_SPEEDUP[:3], _ACCEPTANCE[0], *_IDENTICAL))


def speedup_table(runs: Sequence[Run]) -> Table:
    """At the least load, where there are runs at all."""
    index = RunIndex(runs)
    least = index.loads[:1]
    return _of_runs(
        " ".join(("Speedup at", *least)),
        [run for run in index if run.load_label in least],
        (*_SPEEDUP, *_ACCEPTANCE, *_IDENTICAL),
    ).without_empty()


def complete_tables(runs: Sequence[Run]) -> tuple[Table, ...]:
    """Every figure of every run."""
    parts = ("mean", "p50", "p90", "p99")
    whole = (
        *_spread("gap", lambda run: run.chunk_gap_ms, parts),
        *_spread("answer", lambda run: run.e2e_ms, parts),
    )
    titles = (
        *("Speed", "Latency in ms: first token, and each behind it"),
        *("Latency in ms: gaps between chunks, and whole answers", "Speculation", "Answers, memory, cost"),
    )
    figures = (_SPEED, _latency(parts), whole, _SPECULATION, _ANSWERS)
    index = RunIndex(runs)
    return tuple(_of_runs(title, index, found) for title, found in zip(titles, figures, strict=True))


def best_replays(replay: Sequence[ReplayRun]) -> list[ReplayRun]:
    """All of all classes together, and of each class and proposer the K that is worth most: a sweep has many."""
    best = dict[tuple[str, str], ReplayRun]()
    for run in replay:
        key = run.task_class, run.proposer
        if key not in best or _worth(run) > _worth(best[key]):
            best[key] = run
    return [run for run in replay if run.task_class == ALL or run is best[run.task_class, run.proposer]]


def _worth(run: ReplayRun) -> float:
    return run.predicted_speedup or run.mean_acceptance_length or 0.0


def replay_table(replay: Sequence[ReplayRun]) -> Table:
    columns = (
        *(Column("class", "key"), Column("proposer", "key"), Column("K", "key"), Column("answers"), Column("tokens")),
        *(Column("τ"), Column("accepted"), Column("accepted by position", "text"), Column("predicted speedup")),
    )
    return Table("Proposers on recorded answers", columns, tuple(map(_replay_row, replay)), num_groups=1)


def _replay_row(run: ReplayRun) -> tuple[str, ...]:
    return (
        *(short_name(run.task_class), short_name(run.proposer), str(run.num_speculative_tokens)),
        *(f"{run.num_answers:,}", f"{run.num_tokens:,}"),
        *(number(run.mean_acceptance_length), percent(run.draft_acceptance_rate)),
        *(" ".join(map(percent, run.acceptance_by_position)) or MISSING, ratio(run.predicted_speedup)),
    )


def advice_table(advice: Sequence[Advice]) -> Table:
    columns = (Column("class", "key"), Column("mode", "key"), Column("K"), Column("up to"), Column("why", "text"))
    rows = tuple(
        (
            *(short_name(found.task_class), short_name(found.mode), str(found.num_speculative_tokens)),
            *(_limit(found), clean(found.reason)),
        )
        for found in advice
    )
    return Table("Mode by class", columns, rows)


def _limit(advice: Advice) -> str:
    if advice.max_concurrency is not None:
        return f"c={advice.max_concurrency}"
    return "any measured" if advice.max_request_rate is None else f"{advice.max_request_rate:g}/s"


def differences_table(differences: Sequence[Difference]) -> Table:
    columns = (
        *(Column("mode", "key"), Column("item", "key"), Column("turn", "key"), Column("token")),
        *(Column("expected", "text"), Column("found", "text"), Column("text so far", "text")),
    )
    rows = tuple(
        (
            *(short_name(found.mode), short_name(found.item), str(found.turn), f"{found.index:,}"),
            *(_piece(found.expected), _piece(found.found), clean(found.context)),
        )
        for found in differences
    )
    return Table("First differences", columns, rows)


def _piece(found: int | str | None) -> str:
    return "(end)" if found is None else clean(str(found))


def forward_table(result: Result) -> Table:
    """T(n), v(n) = T(n) / T(1), and n / v(n): the most that n rows can give one request."""
    times = {int(rows): time for rows, time in result.forward_ms.items()}
    first = times.get(1)
    columns = (Column("rows n", "key"), Column("T(n), ms"), Column("T(n) / floor"), Column("v(n)"), Column("n / v(n)"))
    rows = tuple(
        (
            *(str(n), number(time), ratio(time / result.floor_ms if result.floor_ms else None)),
            *((ratio(time / first), ratio(n * first / time)) if first and time else (MISSING, MISSING)),
        )
        for n, time in sorted(times.items())
    )
    return Table("Forwards of n rows", columns, rows)
