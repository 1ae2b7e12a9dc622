"""What a benchmark shows on a terminal: how far it is and what it found so far, and the tables at its end."""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from paceline.bench.compare import Comparison
from paceline.bench.report.comparison import comparison_notes, comparison_tables
from paceline.bench.report.headline import headline
from paceline.bench.report.index import RunIndex
from paceline.bench.report.tables import (
    Column,
    Table,
    advice_table,
    best_replays,
    differences_table,
    progress_table,
    replay_table,
    summary_tables,
)
from paceline.bench.report.texts import clean, duration, interval, number, shortened
from paceline.bench.result import ReplayRun, Result, Run
from paceline.controller import OFF

if TYPE_CHECKING:
    import rich.console
    import rich.live
    import rich.table

_LINE_INTERVAL = 15.0  # seconds between two lines
_WIDE = 200  # columns where no terminal sets a limit
_LONGEST_WORD = 12  # columns; what is longer is folded where there is no room
_STYLES = {
    **{"faster": "green", "slower": "red", "undecided": "yellow"},
    **{"better": "green", "worse": "red"},
}


@dataclass(frozen=True, slots=True)
class Progress:
    """Blocks that are `done` of `total`, at least 1, `elapsed` seconds after the first began."""

    done: int
    total: int
    elapsed: float

    @property
    def remaining(self) -> float | None:
        """Seconds, if the rest goes as fast as what is done. None before the first block."""
        return self.elapsed / self.done * (self.total - self.done) if self.done else None


class LiveView(ABC):
    """On standard error, from the first `update` to the end of the `with`; drawn in `update`, by no thread."""

    @abstractmethod
    def update(self, progress: Progress, runs: Sequence[Run]) -> None:
        """`runs`: the figures so far; there may be none."""

    @abstractmethod
    def say(self, text: str) -> None:
        """What is being done once all blocks are."""

    @abstractmethod
    def close(self) -> None:
        """Leave the terminal as it was found."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def live_view() -> LiveView:
    """A table and a bar where standard error is a terminal, else a line now and then."""
    is_able = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return TableView() if is_able else LineView()


class LineView(LiveView):
    """A line at the first block, at the last, and between them not more often than every 15 seconds."""

    def __init__(self) -> None:
        self._printed: float | None = None

    def update(self, progress: Progress, runs: Sequence[Run]) -> None:
        is_due = self._printed is None or progress.elapsed - self._printed >= _LINE_INTERVAL
        if is_due or progress.done == progress.total:
            self._printed = progress.elapsed
            sys.stderr.write("; ".join([progress_text(progress), *_speedups(runs)]) + "\n")
            sys.stderr.flush()

    def say(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Lines stay."""


class TableView(LiveView):
    """Removed at the end: the last tables follow on standard output."""

    def __init__(self) -> None:
        self._live: rich.live.Live | None = None

    def update(self, progress: Progress, runs: Sequence[Run]) -> None:
        from rich.console import Group
        from rich.padding import Padding
        from rich.progress_bar import ProgressBar

        bar = ProgressBar(total=progress.total, completed=progress.done, width=40)
        parts = [_as_rich(progress_table(runs))] if runs else []
        # What matters stays, should the rest not fit.
        self._show(Group(progress_text(progress), Padding(bar, 0), *parts))

    def say(self, text: str) -> None:
        from rich.text import Text

        self._show(Text(text))

    def _show(self, shown: "rich.console.RenderableType") -> None:
        if self._live is None:
            self._live = _new_live()
            self._live.start()
        self._live.update(shown, refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def progress_text(progress: Progress) -> str:
    counts = f"{progress.done} of {progress.total} blocks, {progress.done / progress.total:.0%}"
    left = "" if progress.remaining is None else f", {duration(progress.remaining)} left"
    return f"{counts}, {duration(progress.elapsed)} passed{left}"


def _speedups(runs: Sequence[Run]) -> list[str]:
    """A mode each, over all classes: its speedup, or the rate of plain decoding."""
    index = RunIndex(runs)
    found = []
    for run in index:
        if run.task_class == index.overall:
            is_off = run.mode == OFF
            rate = f"{number(run.output_tokens_per_second)} tok/s"
            figure = rate if is_off else f"{interval(run.speedup, run.speedup_ci)} {run.verdict or ''}".rstrip()
            found.append(f"{shortened(run.mode)} at {run.load_label} {figure}")
    return found


def print_result(result: Result) -> None:
    """The tables that one reads first and the headline below them, on standard output."""
    console = _console()
    tables = [
        *(*summary_tables(result.runs), advice_table(result.advice)),
        *(replay_table(best_replays(result.replay)), differences_table(result.differences)),
    ]
    for table in tables:
        if table.has_figures:
            console.print(_as_rich(table), crop=False)
    for note in result.notes:
        console.print(clean(note), soft_wrap=True)
    found = headline(result)
    console.print(f"{found.title}. {found.sentence}.", style=_STYLES.get(found.verdict, ""), soft_wrap=True)
    if found.is_identical is False:
        console.print("The text is not that of plain decoding everywhere.", style="red", soft_wrap=True)
    if not result.is_complete:
        console.print("Interrupted: these are the figures of what was measured until then.", soft_wrap=True)


def print_replay(replay: Sequence[ReplayRun]) -> None:
    """On standard output."""
    _console().print(_as_rich(replay_table(replay)))


def print_comparison(comparison: Comparison) -> None:
    """On standard output."""
    console = _console()
    for table in comparison_tables(comparison):
        if table.rows:
            console.print(_as_rich(table))
    for note in comparison_notes(comparison):
        console.print(note, soft_wrap=True)


def _console() -> "rich.console.Console":
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else _WIDE)


def _new_live() -> "rich.live.Live":
    from rich.console import Console
    from rich.live import Live

    return Live(
        console=Console(stderr=True, highlight=False, markup=False, emoji=False),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _as_rich(table: Table) -> "rich.table.Table":
    """Rows of one group together; the words of verdicts and of differing texts in colour."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(
        title=Text(table.title), title_justify="left", box=box.SIMPLE, collapse_padding=True, pad_edge=False
    )
    for place, column in enumerate(table.columns):
        is_text = column.kind in ("key", "text", "verdict")
        justify: Literal["left", "right"] = "left" if is_text else "right"
        width = _least_width(column, [row[place] for row in table.rows])
        shown.add_column(Text(column.heading), justify=justify, overflow="fold", min_width=width)
    for place, row in enumerate(table.rows):
        following = table.rows[place + 1 : place + 2]
        is_last = bool(following) and following[0][: table.num_groups] != row[: table.num_groups]
        cells = [Text(cell, style=_style(column.kind, cell)) for column, cell in zip(table.columns, row, strict=True)]
        shown.add_row(*cells, end_section=is_last and table.num_groups > 0)
    return shown


def _least_width(column: Column, cells: Sequence[str]) -> int:
    """Figures stay whole, so do words; headings and names may break between words."""
    words = column.heading.split()
    if column.kind == "number":
        return max(map(len, (*words, *cells)))
    words += [word for cell in cells for word in cell.split()]
    return min(max(map(len, words)), _LONGEST_WORD)


def _style(kind: str, cell: str) -> str:
    if kind == "identical":
        return "red" if "%" in cell and cell != "100 %" else ""
    return _STYLES.get(cell, "") if kind == "verdict" else ""
