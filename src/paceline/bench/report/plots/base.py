"""What every plot shares: its contract, its colours, and how it is drawn and saved."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from paceline.bench.report.texts import shortened
from paceline.bench.result import Result
from paceline.controller import OFF

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours as they are on paper. The page shows each as a CSS variable of the same name, so that it follows dark mode.
COLOURS = {
    "ink": "#1b1f24",
    "muted": "#66707b",
    "grid": "#e1e5ea",
    "paper": "#fefefe",
    "series-1": "#0b62c4",
    "series-2": "#d15600",
    "series-3": "#08805c",
    "series-4": "#ad3f8c",
    "series-5": "#856800",
    "series-6": "#0d8599",
    "series-7": "#c22a30",
    "series-8": "#5d55d1",
}
_WIDTH = 9.5  # inches
_MOST_COLUMNS = 3  # of panels
_SERIES = tuple(colour for name, colour in COLOURS.items() if name.startswith("series"))
_MARKERS = "osD^vPX"  # not as many as colours: pairs repeat only after 56 modes
REFERENCE, CEILING = "plain decoding", "ceiling"  # in legends
NOT_MODES = (REFERENCE, CEILING)
_SETTINGS: dict[str, Any] = {
    "text.parse_math": False,  # names come from anywhere
    "svg.fonttype": "none",
    "svg.hashsalt": "paceline",
    "font.size": 10,
    "text.color": COLOURS["ink"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.titlecolor": COLOURS["ink"],
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.edgecolor": COLOURS["muted"],
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": COLOURS["grid"],
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.labelcolor": COLOURS["ink"],
    "figure.facecolor": COLOURS["paper"],
    "legend.frameon": False,
}


@dataclass(frozen=True, slots=True)
class Plot:
    """`name`: of its file, without the ending. `caption`: how to read it. `draw` returns None where a result has
    nothing to show in it; it is called within `styled`.
    """

    name: str
    title: str
    caption: str
    draw: "Callable[[Result], Figure | None]"


@dataclass(frozen=True, slots=True)
class Look:
    """Of a mode, the same in every plot of a result."""

    label: str
    colour: str
    marker: str
    line: str = "-"


def looks(modes: Sequence[str]) -> dict[str, Look]:
    """`modes`: as `RunIndex` orders them. Plain decoding is dashed and without a colour."""
    found = {OFF: Look(OFF, COLOURS["ink"], "o", "--")}
    for place, mode in enumerate(mode for mode in modes if mode != OFF):
        label = legend_label(mode)
        if any(look.label == label for look in found.values()):
            label += f" ({place + 1})"
        found[mode] = Look(label, _SERIES[place % len(_SERIES)], _MARKERS[place % len(_MARKERS)])
    return found


def legend_label(name: str) -> str:
    """matplotlib leaves out of legends what begins with an underscore."""
    return f" {shortened(name)}" if name.startswith("_") else shortened(name)


@contextmanager
def styled() -> Iterator[None]:
    """Whatever the user's matplotlib is set to. Names may have letters that its font lacks: a browser has them."""
    import matplotlib.style

    with catch_warnings(), matplotlib.style.context(["default", _SETTINGS]):
        filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        yield


def new_figure(height: float) -> "Figure":
    """In inches. All are equally wide, so that letters on the page are equally large."""
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH, height), layout="constrained")


def panels(count: int, height: float) -> "tuple[Figure, list[Axes]]":
    """Side by side, not more than three in a row; `height` inches each. The lowest of each column has the numbers of
    x."""
    columns = 2 if count == 4 else min(count, _MOST_COLUMNS)
    rows = -(-count // columns)
    figure = new_figure(height * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    flat = list(grid.flat)
    for axes in flat[count:]:
        axes.remove()
    for axes in flat[max(0, count - columns) : count]:
        axes.tick_params(axis="x", labelbottom=True)
    return figure, flat[:count]


def add_legend(figure: "Figure", axes: "Sequence[Axes]") -> None:
    """One for all panels, above them, for which the figure grows; nothing where one thing alone is drawn. Modes come
    first."""
    found: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    labels = sorted(found, key=lambda label: label in NOT_MODES)
    if len(labels) > 1:
        handles = [found[label] for label in labels]
        columns = max(1, min(len(labels), int(_WIDTH / (0.65 + 0.085 * max(map(len, labels))))))
        figure.set_figheight(figure.get_figheight() + 0.1 + 0.22 * -(-len(labels) // columns))
        figure.legend(handles, labels, loc="outside upper left", ncols=columns)
