"""What `paceline bench` shows while it measures."""

from time import perf_counter

from paceline.bench.experiment import Experiment, Judging
from paceline.bench.report import LiveView, Progress

_SHOW_EVERY = 2.0  # seconds: figures with their intervals take a moment


class Shown:
    """Brings a live view up to date, not more often than is worth it."""

    def __init__(self, view: LiveView, judging: Judging) -> None:
        self._view = view
        self._judging = judging
        self._began = self._shown = perf_counter()

    def show(self, experiment: Experiment, done: int, total: int) -> None:
        now = perf_counter()
        if done == 0:
            self._began = now
        if done in (0, total) or now - self._shown >= _SHOW_EVERY:
            self._view.update(Progress(done, total, now - self._began), experiment.runs(self._judging))
            self._shown = perf_counter()

    def say(self, text: str) -> None:
        """What is being done once all blocks are."""
        self._view.say(text)
