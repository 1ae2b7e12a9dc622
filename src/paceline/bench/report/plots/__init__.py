"""The plots of a result: what each shows is its file's business, how they are saved is said here."""

from pathlib import Path

from paceline.bench.report.plots import acceptance, forwards, load, speedup, time_share
from paceline.bench.report.plots.base import COLOURS, Plot, styled
from paceline.bench.report.plots.svg import inline_svg
from paceline.bench.result import Result
from paceline.errors import PacelineError

PLOTS: tuple[Plot, ...] = (speedup.PLOT, load.THROUGHPUT, load.P99, acceptance.PLOT, forwards.PLOT, time_share.PLOT)

_DOTS_PER_INCH = 150

__all__ = ["COLOURS", "PLOTS", "Plot", "check_plots", "draw_plots"]


def check_plots() -> None:
    """Raise what drawing would without matplotlib, before anything is measured."""
    try:
        import matplotlib.figure  # noqa: F401 (only whether it is there)
    except ImportError:
        raise PacelineError(
            "the report needs matplotlib, which is not here; install it with pip install 'paceline[plot]'"
        ) from None


def draw_plots(result: Result, folder: Path) -> dict[str, tuple[Path, str]]:
    """By name of the plot: the PNG written into `folder`, and the same as SVG to stand in a page. Plots that have
    nothing to show are not among them."""
    found = {}
    for plot in PLOTS:
        with styled():
            figure = plot.draw(result)
            if figure is not None:
                path = folder / f"{plot.name}.png"
                figure.savefig(path, dpi=_DOTS_PER_INCH)
                description = f"{plot.caption} The figures are in the tables of this page."
                found[plot.name] = path, inline_svg(figure, plot.name, plot.title, description)
    return found
