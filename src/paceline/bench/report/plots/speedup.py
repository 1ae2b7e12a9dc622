"""Speedup by class with its intervals, a panel for each load, the ceiling beside every one."""

from typing import TYPE_CHECKING

from paceline.bench.base import ALL
from paceline.bench.report.index import RunIndex
from paceline.bench.report.plots.base import CEILING, COLOURS, REFERENCE, Look, Plot, add_legend, looks, panels
from paceline.bench.report.texts import shortened
from paceline.bench.result import Result, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SPREAD = 0.7  # of the height of a class is its modes'


def _draw(result: Result) -> "Figure | None":
    index = RunIndex(result.runs)
    modes = [mode for mode in index.speculating if any(run.mode == mode and run.speedup is not None for run in index)]
    loads = [load for load in index.loads if any(run.load_label == load and run.speedup is not None for run in index)]
    if not modes:
        return None
    classes = index.distinct_classes
    height = 0.7 + len(classes) * max(0.35, 0.17 * len(modes))
    figure, axes = panels(len(loads), height)
    found = looks(index.modes)
    for panel, load in zip(axes, loads, strict=True):
        for row, task_class in enumerate(classes):
            for place, mode in enumerate(modes):
                run = index.get(task_class, mode, load)
                shift = (place - (len(modes) - 1) / 2) * _SPREAD / len(modes)
                if run is not None and run.speedup is not None:
                    _draw_run(panel, row + shift, run, found[mode], _SPREAD / len(modes))
        _finish(panel, load, classes)
    for mode in modes:  # of the legend: filled, whatever the first of them is
        axes[0].plot([], [], found[mode].marker, color=found[mode].colour, markersize=5, label=found[mode].label)
    axes[0].set_xlim(left=_left(list(index)))
    figure.supxlabel("speedup of decoding", fontsize=10)
    add_legend(figure, axes)
    return figure


def _left(runs: list[Run]) -> float:
    """The end of the axis, which all panels share: 1 is in it, and every interval."""
    ends: list[float] = [end for run in runs for end in (run.speedup, *(run.speedup_ci or ())) if end is not None]
    return min(0.9, *ends) - 0.05


def _draw_run(axes: "Axes", y: float, run: Run, look: Look, height: float) -> None:
    """Hollow where it is undecided. A run without a speedup has no mark."""
    speedup = run.speedup
    if speedup is None:
        return
    if run.speedup_ci is not None:
        axes.plot(run.speedup_ci, (y, y), color=look.colour, linewidth=1.8, marker="|", markersize=7)
    is_decided = run.verdict in ("faster", "slower")
    face = look.colour if is_decided else COLOURS["paper"]
    axes.plot([speedup], [y], look.marker, color=look.colour, markerfacecolor=face, markersize=5, zorder=3)
    if run.ceiling is not None:
        half = min(height, 0.3) / 2
        axes.plot([run.ceiling] * 2, [y - half, y + half], color=COLOURS["muted"], linewidth=1.5, label=CEILING)


def _finish(axes: "Axes", load: str, classes: tuple[str, ...]) -> None:
    axes.axvline(1, color=COLOURS["ink"], linestyle="--", linewidth=1, label=REFERENCE)
    axes.set_title(f"at {load}")
    axes.set_yticks(range(len(classes)), [shortened(name) for name in classes])
    axes.set_ylim(len(classes) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    if len(classes) > 1 and classes[0] == ALL:
        axes.axhline(0.5, color=COLOURS["grid"], linewidth=1)


PLOT = Plot(
    "speedup",
    "Speedup by class",
    "Tokens per second of decoding over those of mode off in the same blocks, with 95 % intervals. Hollow marks are "
    "undecided: the interval holds 1, or there are too few blocks. Short grey strokes: the ceiling, the most that "
    "speculation could give at this load.",
    _draw,
)
