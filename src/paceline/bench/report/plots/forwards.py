"""What a forward of n rows costs, against the floor of reading the weights, and the ceiling that follows."""

from typing import TYPE_CHECKING

from paceline.bench.report.plots.base import COLOURS, Plot, new_figure
from paceline.bench.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _draw(result: Result) -> "Figure | None":
    times = dict(sorted((int(rows), time) for rows, time in result.forward_ms.items()))
    first = times.get(1)
    if not first:
        return None
    figure = new_figure(3.2)
    left, right = figure.subplots(1, 2)
    _draw_costs(left, times, first, result.floor_ms)
    colour = COLOURS["series-3"]
    right.plot(list(times), [n * first / time for n, time in times.items()], marker="o", markersize=5, color=colour)
    right.axhline(1, color=COLOURS["ink"], linestyle="--", linewidth=1)
    right.set_ylabel("n / v(n)")
    for axes in (left, right):
        axes.set_xlabel("rows n")
        axes.set_ylim(bottom=0)
        axes.set_xticks([rows for rows in times if rows == 1 or rows >= max(times) / 16])
    return figure


def _draw_costs(axes: "Axes", times: dict[int, float], first: float, floor: float | None) -> None:
    rows = list(times)
    costs = [time / first for time in times.values()]
    axes.plot(rows, costs, marker="o", markersize=5, color=COLOURS["series-1"], label="v(n) = T(n) / T(1)")
    if floor is not None:
        axes.axhline(floor / first, color=COLOURS["ink"], linewidth=1.2, label="floor: reading the weights")
    axes.plot(rows, rows, color=COLOURS["muted"], linestyle=":", label="n: nothing shared")
    axes.set_ylabel("cost, in forwards of one row")
    axes.legend(fontsize="small")


PLOT = Plot(
    "forwards",
    "Cost of a forward",
    "Left: the time of a forward over n rows in those of one row, v(n), against the time that reading the weights "
    "takes at the best measured bandwidth. Right: n / v(n), the most that checking n − 1 draft tokens could give one "
    "request if all of them stood and drafting were free.",
    _draw,
)
