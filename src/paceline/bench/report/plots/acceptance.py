"""Which share of the drafts stands up to each position, a panel for each class."""

from typing import TYPE_CHECKING

from paceline.bench.report.index import RunIndex
from paceline.bench.report.plots.base import Plot, add_legend, looks, panels
from paceline.bench.report.texts import shortened
from paceline.bench.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _draw(result: Result) -> "Figure | None":
    index = RunIndex(result.runs)
    by_class: dict[str, dict[str, tuple[float, ...]]] = {}
    for task_class in index.distinct_classes:
        for mode in index.speculating:
            run = index.get(task_class, mode, index.loads[0])
            if run is not None and run.acceptance_by_position:
                by_class.setdefault(task_class, {})[mode] = run.acceptance_by_position
    if not by_class:
        return None
    figure, axes = panels(len(by_class), 2.2)
    found = looks(index.modes)
    for panel, (task_class, by_mode) in zip(axes, by_class.items(), strict=True):
        for mode, shares in by_mode.items():
            look = found[mode]
            places = range(1, len(shares) + 1)
            panel.plot(places, shares, marker=look.marker, markersize=4, color=look.colour, label=look.label)
        panel.set_title(shortened(task_class, 30))
        panel.set_ylim(0, 1.04)
    longest = max(len(shares) for by_mode in by_class.values() for shares in by_mode.values())
    axes[0].set_xticks(range(1, longest + 1, 1 + longest // 12))
    figure.supxlabel("position in the draft", fontsize=10)
    figure.supylabel("share accepted", fontsize=10)
    add_legend(figure, axes)
    return figure


PLOT = Plot(
    "acceptance",
    "Acceptance by position",
    "The share of drafts of which all tokens up to this position stood, at the least load. Shorter drafts count too.",
    _draw,
)
