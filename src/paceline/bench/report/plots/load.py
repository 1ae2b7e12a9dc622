"""Throughput and the slowest answers against the load, with and without speculation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from paceline.bench.report.index import RunIndex
from paceline.bench.report.plots.base import Look, Plot, add_legend, looks, new_figure
from paceline.bench.result import Result, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class _Panel:
    """`values`: by mode, then by place among the loads; there is at least one."""

    name: str
    load_name: str
    loads: tuple[str, ...]
    values: dict[str, dict[int, float]]


Measure = tuple[str, Callable[[Run], float | None]]

_THROUGHPUT: Sequence[Measure] = (("output tokens a second", lambda run: run.output_tokens_per_second),)
_P99: Sequence[Measure] = (
    ("TTFT p99, ms", lambda run: run.ttft_ms.p99),
    ("TPOT p99, ms", lambda run: run.tpot_ms.p99),
)


def _draw(measures: Sequence[Measure], result: Result) -> "Figure | None":
    """A row for the closed loops and one for the open ones, a column for each measure, over all classes."""
    index = RunIndex(result.runs)
    wanted: list[_Panel] = []
    for is_open, label in ((False, "concurrency"), (True, "requests a second")):
        loads = index.loads_of(is_open=is_open)
        for name, figure_of in measures:
            values = _values(index, loads, figure_of)
            if values:
                wanted.append(_Panel(name, label, loads, values))
    if not wanted:
        return None
    columns = min(2, len(wanted))
    rows = -(-len(wanted) // columns)
    height = 2.9 if any(len(panel.loads) > 1 for panel in wanted) else 0.8 + 0.35 * len(index.modes)
    figure = new_figure(height * rows)
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    kept, spare = grid[: len(wanted)], grid[len(wanted) :]
    for axes in spare:
        axes.remove()
    for axes, panel in zip(kept, wanted, strict=True):
        draw = _draw_lines if len(panel.loads) > 1 else _draw_bars
        draw(axes, panel, looks(index.modes))
    add_legend(figure, kept)
    return figure


def _values(
    index: RunIndex, loads: Sequence[str], figure_of: Callable[[Run], float | None]
) -> dict[str, dict[int, float]]:
    """By mode, then by place among the loads; modes without any are left out."""
    found: dict[str, dict[int, float]] = {}
    for mode in index.modes:
        for place, load in enumerate(loads):
            run = index.get(index.overall, mode, load)
            value = None if run is None else figure_of(run)
            if value is not None:
                found.setdefault(mode, {})[place] = value
    return found


def _draw_lines(axes: "Axes", panel: _Panel, found: dict[str, Look]) -> None:
    """Loads at equal distances: they are usually doubled from one to the next."""
    for mode, by_place in panel.values.items():
        look = found[mode]
        places, heights = list(by_place), list(by_place.values())
        axes.plot(places, heights, look.line, marker=look.marker, markersize=5, color=look.colour, label=look.label)
    labels = [load.removeprefix("c=").removesuffix("/s") for load in panel.loads]
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel(panel.load_name)
    axes.set_ylabel(panel.name)
    axes.set_ylim(bottom=0)
    axes.grid(visible=False, axis="x")


def _draw_bars(axes: "Axes", panel: _Panel, found: dict[str, Look]) -> None:
    """A bar for each mode, at the one load that there is."""
    for place, (mode, by_place) in enumerate(panel.values.items()):
        axes.barh([place], list(by_place.values()), height=0.6, color=found[mode].colour)
    axes.set_yticks(range(len(panel.values)), [found[mode].label for mode in panel.values])
    axes.set_ylim(len(panel.values) - 0.5, -0.5)
    axes.set_xlabel(f"{panel.name}, at {panel.loads[0]}")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


THROUGHPUT = Plot(
    "throughput",
    "Throughput against load",
    "Tokens of all answers over the time of the blocks, over all classes. Mode off is plain decoding.",
    partial(_draw, _THROUGHPUT),
)
P99 = Plot(
    "p99",
    "Latency against load",
    "The 99th percentile of the time to the first token (TTFT) and of the time per token behind it (TPOT), over all "
    "classes. Less is better. Mode off is plain decoding.",
    partial(_draw, _P99),
)
