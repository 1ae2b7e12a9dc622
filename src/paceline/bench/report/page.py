"""`report.html`: one file with everything in it, made from the template beside this module, and the plots as PNG."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.bench.report.headline import Headline, headline
from paceline.bench.report.plots import COLOURS, PLOTS, check_plots, draw_plots
from paceline.bench.report.tables import (
    Table,
    advice_table,
    complete_tables,
    differences_table,
    forward_table,
    replay_table,
    speedup_table,
)
from paceline.bench.report.texts import MISSING, clean, facts, number, percent, ratio
from paceline.bench.result import Result
from paceline.controller import OFF
from paceline.errors import UsageError
from paceline.models.quoting import quoted

if TYPE_CHECKING:
    import jinja2

_NAME = "report.html"
_TEMPLATE = "page.html.jinja"


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot as the page shows it. `svg` is markup."""

    title: str
    caption: str
    file: str
    svg: str


@dataclass(frozen=True, slots=True)
class Section:
    """`id` is unique on the page."""

    id: str
    title: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


def write(result: Result, folder: Path) -> list[Path]:
    """The page and its plots into `folder`, which must be there; their paths, the page first. Plots of an earlier
    report that this one does not have go. Raises PacelineError without matplotlib."""
    check_plots()
    if not folder.is_dir():
        raise UsageError(f"the report's folder is {quoted(str(folder))}; there is no such folder, make it first")
    drawn = draw_plots(result, folder)
    figures = {
        plot.name: Figure(plot.title, plot.caption, drawn[plot.name][0].name, drawn[plot.name][1])
        for plot in PLOTS
        if plot.name in drawn
    }
    for plot in PLOTS:
        if plot.name not in drawn:
            (folder / f"{plot.name}.png").unlink(missing_ok=True)
    page = folder / _NAME
    page.write_text(_render(result, figures), encoding="utf-8")
    return [page, *(path for path, _ in drawn.values())]


def _render(result: Result, figures: dict[str, Figure]) -> str:
    found = headline(result)
    told = {
        "Provenance": result.provenance,
        "Settings": result.settings,
        "What must be equal to compare": result.fingerprint,
    }
    return _template().render(
        headline=found,
        tiles=_tiles(found),
        sections=[section for section in _sections(result, figures) if section.figures or section.tables],
        subtitle=_subtitle(result),
        notes=result.notes,
        is_complete=result.is_complete,
        facts=[(title, facts(values)) for title, values in told.items() if values],
        has_setup=bool(result.notes or any(told.values())),
        colours=COLOURS,
    )


def _sections(result: Result, figures: dict[str, Figure]) -> list[Section]:
    def drawn(*names: str) -> tuple[Figure, ...]:
        return tuple(figures[name] for name in names if name in figures)

    return [
        Section("by-class", "Speedup by class", drawn("speedup"), _filled(speedup_table(result.runs))),
        Section("advice", "What to use", (), _filled(advice_table(result.advice))),
        Section("load", "Throughput and latency against load", drawn("throughput", "p99")),
        Section("by-position", "Acceptance by position", drawn("acceptance")),
        Section("cost", "Cost of a forward", drawn("forwards"), _filled(forward_table(result))),
        Section("time", "Where the time goes", drawn("time_share")),
        Section("same-text", "Where the text differs", (), _filled(differences_table(result.differences))),
        Section("recorded", "Replay", (), _filled(replay_table(result.replay))),
        Section("all-figures", "All figures", (), _filled(*complete_tables(result.runs))),
    ]


def _filled(*tables: Table) -> tuple[Table, ...]:
    return tuple(table for table in tables if table.has_figures)


def _tiles(found: Headline) -> list[tuple[str, str, str]]:
    """Label, figure and what stands below it, for the headline's run."""
    run, off = found.run, found.off
    if run is None:
        return []
    rate = "output tokens / s"
    tiles = [(rate, number(run.output_tokens_per_second), "")]
    if run.mode != OFF:
        plain = MISSING if off is None else number(off.output_tokens_per_second)
        spread = "" if run.speedup_ci is None else f"{ratio(run.speedup_ci[0])} to {ratio(run.speedup_ci[1])}"
        tiles = [
            ("speedup", ratio(run.speedup), spread),
            ("ceiling", ratio(run.ceiling), "from v(n)"),
            (rate, number(run.output_tokens_per_second), f"off: {plain}"),
            ("τ", number(run.mean_acceptance_length), "tokens per target forward"),
            ("identical text", percent(run.identical_fraction), "of the answers"),
        ]
    errors = f"{run.num_errors:,} failed" if run.num_errors else "none failed"
    return [*tiles, ("answers", f"{run.num_answers:,}", f"in {run.num_blocks:,} blocks, {errors}")]


def _subtitle(result: Result) -> str:
    """What was measured, as far as the result says it in its provenance."""
    model = result.provenance.get("model")
    told = [model.get("name") if isinstance(model, dict) else None, result.provenance.get("cpu")]
    told += [result.settings.get("workload"), result.provenance.get("date")]
    return " · ".join(each for each in told if isinstance(each, str))


def _template() -> "jinja2.Template":
    """Everything that goes in is cleaned, then escaped; only SVG and the style sheet's colours are markup already."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("paceline.bench.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_cleaned,
    )
    return environment.get_template(_TEMPLATE)


def _cleaned(value: Any) -> Any:
    """Markup is a str too, of a class of its own."""
    return clean(value) if type(value) is str else value
