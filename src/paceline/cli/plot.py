"""The picture of `paceline profile --plot`: where the time of a step goes, and T(n) between its two limits."""

from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import PacelineError, UsageError
from paceline.models.quoting import quoted
from paceline.runtime.profile import Profile
from paceline.runtime.roofline import ROWS, Limits, Roofline, Step
from paceline.runtime.work import ModelWork, Work

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = (".png", ".svg")


def check_plot(path: Path) -> None:
    """Raise what `draw` would, before anything is measured."""
    if path.suffix.lower() not in _KINDS:
        raise UsageError(f"--plot is {quoted(str(path))}; expected a file that ends in {' or '.join(_KINDS)}")
    if not path.parent.is_dir():
        raise UsageError(f"--plot is {quoted(str(path))}; there is no such folder, make it first")
    try:
        import matplotlib.figure  # noqa: F401 (only whether it is there)
    except ImportError:
        raise PacelineError(
            "--plot needs matplotlib, which is not here; install it with pip install 'paceline[plot]'"
        ) from None


def draw(path: Path, title: str, profile: Profile, roofline: Roofline, work: ModelWork) -> None:
    """Write the picture in the format that the file's ending names."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.5), layout="constrained")
    figure.suptitle(title, parse_math=False)
    left, right = figure.subplots(1, 2)
    limits = Limits.of(profile, roofline)
    _draw_parts(left, roofline.steps[: len(ROWS)], limits)
    _draw_curve(right, profile, limits, work)
    figure.savefig(path, format=path.suffix[1:].lower(), dpi=120)


def _draw_parts(axes: "Axes", steps: tuple[Step, ...], limits: Limits) -> None:
    """Steps as bars of their parts, those of one name together, and both limits of the whole step across each."""
    from matplotlib import colormaps

    names = list(dict.fromkeys(part.name for step in steps for part in step.parts))
    bottoms = [0.0] * len(steps)
    for index, name in enumerate(names):
        heights = [sum(part.seconds for part in step.parts if part.name == name) * 1e3 for step in steps]
        colour = colormaps["tab20"](index % 20)
        axes.bar(range(len(steps)), heights, bottom=bottoms, width=0.7, color=colour, label=name)
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights, strict=True)]
    ends = [index - 0.45 for index in range(len(steps))], [index + 0.45 for index in range(len(steps))]
    floors = [limits.reading(step.work) * 1e3 for step in steps]
    arithmetic = [limits.multiplying(step.work) * 1e3 for step in steps]
    axes.hlines(floors, *ends, colors="black", label="floor: all bytes")
    axes.hlines(arithmetic, *ends, colors="black", linestyles="dashed", label="limit of arithmetic")
    axes.set_xticks(range(len(steps)), [str(step.rows) for step in steps])
    axes.set_xlabel(f"rows n, behind {steps[0].context} cached tokens")
    axes.set_ylabel("ms of a step")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], fontsize="small", loc="upper left")


def _draw_curve(axes: "Axes", profile: Profile, limits: Limits, work: ModelWork) -> None:
    """T(n) at the shortest context over the time of reading the weights."""
    times = min(profile.contexts, key=lambda found: found.length)
    rows = list(times.samples)
    works = [sum((part.work for part in work.parts(n, times.length)), Work()) for n in rows]
    axes.plot(rows, [times.time(n) / profile.floor for n in rows], marker="o", label="T(n)")
    axes.plot(rows, [1.0] * len(rows), color="black", label="floor: the weights' bytes")
    arithmetic = [limits.multiplying(total) / profile.floor for total in works]
    axes.plot(rows, arithmetic, color="black", linestyle="dashed", label="limit of arithmetic")
    axes.set_xlabel(f"rows n, behind {times.length} cached tokens")
    axes.set_ylabel("time / floor")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small")
