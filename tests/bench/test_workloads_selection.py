"""Parts of a workload."""

import pytest

from paceline.bench.base import Item, Workload
from paceline.bench.workloads import select
from paceline.errors import UsageError

WORKLOAD = Workload(
    "w", tuple(Item(f"{name}{i}", name, ("Hi.",)) for name, n in [("a", 1), ("b", 5), ("c", 4)] for i in range(n))
)


@pytest.mark.parametrize(
    ("num_prompts", "task_classes", "chosen"),
    [
        (None, None, "a0 b0 b1 b2 b3 b4 c0 c1 c2 c3"),
        (None, ("c", "a"), "a0 c0 c1 c2 c3"),
        (2, None, "a0 b0"),
        (6, None, "a0 b0 b1 b2 c0 c1"),
        (3, ("c", "b", "c"), "b0 c0 c1"),
        (99, ("a",), "a0"),
    ],
)
def test_selection_is_even(num_prompts: int | None, task_classes: tuple[str, ...] | None, chosen: str) -> None:
    assert " ".join(item.id for item in select(WORKLOAD, num_prompts, task_classes).items) == chosen


@pytest.mark.parametrize(
    ("num_prompts", "task_classes", "message"),
    [
        (0, None, "num_prompts is 0; expected None or an integer of at least 1"),
        (None, (), "there are no task classes to measure; choose from a, b, c"),
        (None, ("d",), "the workload 'w' has no task class 'd'; choose from a, b, c"),
        (None, ("bb",), "the workload 'w' has no task class 'bb'; did you mean 'b'?"),
    ],
)
def test_selections_that_there_are_not(
    num_prompts: int | None, task_classes: tuple[str, ...] | None, message: str
) -> None:
    with pytest.raises(UsageError) as error:
        select(WORKLOAD, num_prompts, task_classes)
    assert str(error.value) == message
