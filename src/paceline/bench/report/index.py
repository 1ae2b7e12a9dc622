"""The runs of a result by what they are runs of, in the order in which every table and plot shows them."""

from collections.abc import Iterator, Sequence

from paceline.bench.base import ALL
from paceline.bench.result import Run
from paceline.controller import OFF


class RunIndex:
    """`task_classes`: "all" first. `modes`: "off" first. `loads`: labels, closed loops before open ones, each from the
    least to the most. Everything else is in the order of the result.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = {(run.task_class, run.mode, run.load_label): run for run in runs}
        self.task_classes = _with_first(ALL, [run.task_class for run in runs])
        self.modes = _with_first(OFF, [run.mode for run in runs])
        self.loads = tuple(dict.fromkeys(run.load_label for run in sorted(runs, key=_load_key)))

    def get(self, task_class: str, mode: str, load: str) -> Run | None:
        return self._runs.get((task_class, mode, load))

    def __iter__(self) -> Iterator[Run]:
        """By load, then class, then mode."""
        for load in self.loads:
            for task_class in self.task_classes:
                for mode in self.modes:
                    run = self.get(task_class, mode, load)
                    if run is not None:
                        yield run

    @property
    def overall(self) -> str:
        """The class that stands for all of them. There is one where there is a run."""
        return self.task_classes[0]

    @property
    def distinct_classes(self) -> tuple[str, ...]:
        """Without "all" where only one class is behind it."""
        is_double = len(self.task_classes) == 2 and self.task_classes[0] == ALL
        return self.task_classes[1:] if is_double else self.task_classes

    @property
    def speculating(self) -> tuple[str, ...]:
        """The modes that are not plain decoding."""
        return tuple(mode for mode in self.modes if mode != OFF)

    def loads_of(self, *, is_open: bool) -> tuple[str, ...]:
        labels = {run.load_label for run in self._runs.values() if (run.concurrency is None) == is_open}
        return tuple(load for load in self.loads if load in labels)


def _with_first(name: str, found: list[str]) -> tuple[str, ...]:
    distinct = list(dict.fromkeys(found))
    return tuple(sorted(distinct, key=lambda other: other != name))


def _load_key(run: Run) -> tuple[bool, float]:
    return run.concurrency is None, run.concurrency or run.request_rate or 0.0
