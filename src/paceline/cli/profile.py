"""`paceline profile`: what a target forward costs on this machine, and so what speculation can gain at best."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import typer

from paceline.cli import roofline as roofline_output
from paceline.cli.failures import complain
from paceline.cli.loading import quantization_of
from paceline.cli.options import QuantizationName
from paceline.cli.plot import check_plot, draw
from paceline.cli.progress import terminal_progress
from paceline.engine.rehearsal import EngineRehearsal
from paceline.errors import UsageError
from paceline.models import Progress, open_model
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.runtime.profile import ContextTimes, Profile, capacity, fits, measure, step_weight_bytes
from paceline.runtime.roofline import Limits, Roofline
from paceline.runtime.roofline import measure as measure_roofline
from paceline.runtime.work import ModelWork


@dataclass(frozen=True, slots=True)
class Setting:
    """What was measured, and how."""

    model: str
    isa: str
    threads: int
    rounds: int


def profile(
    model: str,
    *,
    quantization: QuantizationName | None,
    threads: int | None,
    contexts: Sequence[int],
    rounds: int,
    is_json: bool,
    is_roofline: bool,
    plot: Path | None,
) -> None:
    """Measure and print. Contexts that the model does not have are left out with a note."""
    _check(contexts, rounds, is_roofline, plot)
    progress = terminal_progress()
    with open_model(model, quantization=quantization_of(quantization), progress=progress) as opened:
        config = opened.config
        kept = [context for context in dict.fromkeys(contexts) if fits(config, context)]
        for context in sorted(set(contexts) - set(kept)):
            complain(f"the context {context} is left out: the model has {config.context_length} positions")
        if not kept:
            raise UsageError("no context is left to measure at; give a smaller one with --context")
        options = NativeOptions(max_length=capacity(config, kept), num_threads=threads)
        runtime = NativeRuntime.load(opened, options, progress)
        weight_bytes, work = step_weight_bytes(opened), ModelWork.of(opened)
    rooflines: Iterator[Roofline | None] = repeat(None)
    if is_roofline:
        rooflines = measure_roofline(runtime, work, EngineRehearsal(runtime), kept, rounds)
    result, roofline = _last(measure(runtime, weight_bytes, kept, rounds), rooflines, progress, rounds)
    setting = Setting(model, runtime.info.name.removeprefix("native-"), runtime.num_threads, rounds)
    if plot is not None and roofline is not None:
        title = f"{Path(model).name}, {setting.isa}, {setting.threads} threads"
        draw(plot, title, result, roofline, work)
    if is_json:
        typer.echo(json.dumps(as_json(setting, result, roofline), allow_nan=False))
    else:
        _print(setting, result, roofline)


def _last(
    profiles: Iterator[Profile], rooflines: Iterator[Roofline | None], progress: Progress, rounds: int
) -> tuple[Profile, Roofline | None]:
    """What is known after the last round. Round by round, for what both measure is set against each other."""
    progress.begin("Measuring", rounds)
    try:
        for measured in zip(profiles, rooflines, strict=False):
            progress.update(len(measured[0].contexts[0].samples[1]))
    finally:
        progress.end()
    return measured


def _check(contexts: Sequence[int], rounds: int, is_roofline: bool, plot: Path | None) -> None:
    if rounds < 1:
        raise UsageError(f"--rounds is {rounds}; expected at least 1")
    for context in contexts:
        if context < 0:
            raise UsageError(f"--context is {context}; expected 0 or more")
    if plot is not None:
        if not is_roofline:
            raise UsageError("--plot draws the roofline; give --roofline too")
        check_plot(plot)


def as_json(setting: Setting, result: Profile, roofline: Roofline | None) -> dict[str, Any]:
    """What `--json` prints: `spread_ms` holds the quartiles of T(n), `ceiling` the best n / v(n), `best_rows` its n.

    `roofline` is there only where it was asked for.
    """
    figures = {
        "model": setting.model,
        "isa": setting.isa,
        "threads": setting.threads,
        "rounds": setting.rounds,
        "bandwidth_gb_per_s": result.bandwidth / 1e9,
        "weight_bytes": result.weight_bytes,
        "floor_ms": result.floor * 1e3,
        "contexts": {str(times.length): _context_json(times, result.floor) for times in result.contexts},
    }
    if roofline is not None:
        figures["roofline"] = roofline_output.as_json(roofline, Limits.of(result, roofline))
    return figures


def _context_json(times: ContextTimes, floor: float) -> dict[str, Any]:
    return {
        "t_ms": {str(n): times.time(n) * 1e3 for n in times.samples},
        "spread_ms": {str(n): [bound * 1e3 for bound in times.spread(n)] for n in times.samples},
        "v": {str(n): times.v(n) for n in times.samples},
        "over_floor": {str(n): times.time(n) / floor for n in times.samples},
        "ceiling": times.ceiling(times.best_rows),
        "best_rows": times.best_rows,
    }


def _print(setting: Setting, result: Profile, roofline: Roofline | None) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.print(
        f"{setting.model}, {setting.isa}, {setting.threads} threads, {setting.rounds} rounds\n"
        f"read bandwidth {result.bandwidth / 1e9:.1f} GB/s, weights of one step {result.weight_bytes / 1e6:.1f} MB, "
        f"floor {result.floor * 1e3:.2f} ms",
        soft_wrap=True,
    )
    for times in result.contexts:
        console.print(_table(times, result.floor))
        best = times.best_rows
        console.print(f"No speculation can gain more than {times.ceiling(best):.2f} x here, at {best} rows.\n")
        if times.time(1) < result.floor:
            complain(
                f"T(1) at the context {times.length} is below the floor: the bandwidth was measured too low, "
                "measure again on a quiet machine"
            )
    if roofline is not None:
        roofline_output.print_tables(roofline, Limits.of(result, roofline), console)


def _table(times: ContextTimes, floor: float) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=f"{times.length} tokens of context", title_justify="left", box=box.SIMPLE)
    for heading in ("rows n", "T(n) ms", "quartiles", "v(n)", "T(n) / floor", "ceiling n / v(n)"):
        table.add_column(heading, justify="right")
    for n in times.samples:
        low, high = times.spread(n)
        table.add_row(
            str(n),
            f"{times.time(n) * 1e3:.2f}",
            f"{low * 1e3:.2f} to {high * 1e3:.2f}",
            f"{times.v(n):.2f}",
            f"{times.time(n) / floor:.2f}",
            f"{times.ceiling(n):.2f}",
        )
    return table
