"""A progress bar on standard error, for work that lasts long enough to be noticed. Removed when the work is done."""

import sys
from time import monotonic
from typing import TYPE_CHECKING

from paceline.models import Progress, SilentProgress

if TYPE_CHECKING:
    import rich.progress

_PATIENCE = 0.3  # seconds before a stage gets a bar
_INTERVAL = 0.1  # seconds between two drawings


def terminal_progress() -> Progress:
    """A bar where standard error is a terminal, silence elsewhere."""
    return BarProgress() if sys.stderr.isatty() else SilentProgress()


class BarProgress:
    """One bar, drawn from `update`: no thread runs beside the work, and rich is imported only for a slow stage."""

    def __init__(self) -> None:
        self._bar: rich.progress.Progress | None = None
        self._description = ""
        self._total: int | None = None
        self._started = self._drawn = 0.0

    def begin(self, description: str, total: int | None) -> None:
        self._description, self._total = description, total
        self._started = monotonic()

    def update(self, done: int) -> None:
        now = monotonic()
        if now - self._started < _PATIENCE or now - self._drawn < _INTERVAL:
            return
        self._drawn = now
        if self._bar is None:
            self._bar = _new_bar(self._description)
            self._bar.start()
        total = None if self._total is None else max(self._total, done)
        self._bar.update(self._bar.task_ids[0], completed=done, total=total, refresh=True)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _new_bar(description: str) -> "rich.progress.Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task(description, total=None)
    return bar
