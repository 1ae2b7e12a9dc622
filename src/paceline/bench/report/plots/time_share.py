"""Where the time of decoding goes: drafting, verifying and the host's part."""

from typing import TYPE_CHECKING

from paceline.bench.report.index import RunIndex
from paceline.bench.report.plots.base import COLOURS, Plot, add_legend, legend_label, new_figure
from paceline.bench.report.texts import shortened
from paceline.bench.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"draft": "series-2", "verify": "series-1", "host": "series-5"}
_OTHER = "muted"
_GAP = 0.6  # bars, between loads


def _draw(result: Result) -> "Figure | None":
    """A bar for each mode at each load, over all classes."""
    index = RunIndex(result.runs)
    runs = [run for run in index if run.task_class == index.overall and run.time_share]
    if not runs:
        return None
    places = [place + _GAP * index.loads.index(run.load_label) for place, run in enumerate(runs)]
    figure = new_figure(0.7 + 0.25 * (places[-1] + 1))
    axes = figure.subplots()
    starts = [0.0] * len(runs)
    for part in dict.fromkeys(part for run in runs for part in run.time_share):
        lengths = [100 * run.time_share.get(part, 0.0) for run in runs]
        colour = COLOURS[_COLOURS.get(part, _OTHER)]
        axes.barh(places, lengths, left=starts, height=0.7, color=colour, label=legend_label(part))
        starts = [start + length for start, length in zip(starts, lengths, strict=True)]
    axes.set_yticks(places, [f"{shortened(run.mode)}, {run.load_label}" for run in runs])
    axes.set_ylim(places[-1] + 0.5, places[0] - 0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the time of steps")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    add_legend(figure, [axes])
    return figure


PLOT = Plot(
    "time_share",
    "Time share by part",
    "Of the time of the engine's steps: proposing draft tokens, the target's forward that verifies them, and all "
    "else, on the host.",
    _draw,
)
