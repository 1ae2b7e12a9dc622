"""A part of a workload: some task classes of it, and so many prompts."""

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import chain, zip_longest

from paceline.bench.base import Workload
from paceline.checks import check_integer
from paceline.errors import UsageError


def select(workload: Workload, num_prompts: int | None = None, task_classes: Sequence[str] | None = None) -> Workload:
    """The items of `task_classes` (None: of all), and of those `num_prompts` at most (None: all), evenly by class.

    A class gives its first items: as many as any other, or all it has, or one less where the number does not divide.
    More prompts are the same ones and others. Items stay in their order. Raises UsageError for a class that there is
    not, for none, and for less than one prompt.
    """
    check_integer("num_prompts", num_prompts, 1, or_none=True)
    chosen = workload.task_classes if task_classes is None else tuple(dict.fromkeys(task_classes))
    if not chosen:
        raise UsageError(f"there are no task classes to measure; choose from {', '.join(workload.task_classes)}")
    for name in chosen:
        _check_class(name, workload)
    columns = [[i for i, item in enumerate(workload.items) if item.task_class == name] for name in chosen]
    rounds = [index for index in chain.from_iterable(zip_longest(*columns)) if index is not None]
    indices = sorted(rounds[:num_prompts])
    return Workload(workload.name, tuple(workload.items[i] for i in indices), workload.problems)


def _check_class(name: str, workload: Workload) -> None:
    if name not in workload.task_classes:
        close = get_close_matches(name, workload.task_classes, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(workload.task_classes)}"
        raise UsageError(f"the workload {workload.name!r} has no task class {name!r}; {hint}")
