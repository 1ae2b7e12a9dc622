"""Fixed decisions: the room and the request's override are respected, and every decision names its reason."""

import pytest

from paceline.controller import BatchView, FixedController, OffController, PlanEntry, SequenceView, create_controller
from paceline.errors import UsageError
from paceline.telemetry import Reason
from paceline.testing import ScriptedController


def view(sequence: int = 0, room: int = 9, override: int | None = None) -> SequenceView:
    return SequenceView(sequence, length=10, room=room, num_speculative_tokens=override)


def batch(*views: SequenceView, max_draft_rows: int = 100) -> BatchView:
    return BatchView(views, num_prefill_rows=0, max_draft_rows=max_draft_rows)


@pytest.mark.parametrize(
    ("room", "override", "expected"),
    [
        (9, None, ("ngram", 4, Reason.FIXED)),
        (4, None, ("ngram", 4, Reason.FIXED)),
        (3, None, ("ngram", 3, Reason.LIMIT)),
        (0, None, ("off", 0, Reason.LIMIT)),
        (9, 6, ("ngram", 6, Reason.FIXED)),
        (5, 6, ("ngram", 5, Reason.LIMIT)),
        (9, 0, ("off", 0, Reason.OFF)),
        (0, 0, ("off", 0, Reason.OFF)),
    ],
)
def test_fixed(room: int, override: int | None, expected: tuple[str, int, Reason]) -> None:
    plan = FixedController("ngram", 4).plan(batch(view(7, room, override)))
    assert plan.entries == (PlanEntry(7, *expected),)


def test_one_entry_for_each_view_in_order() -> None:
    views = [view(3), view(1), view(2)]
    for controller in (OffController(), FixedController("ngram", 2), ScriptedController("ngram", lambda _: 1)):
        assert [entry.sequence for entry in controller.plan(batch(*views)).entries] == [3, 1, 2]
        assert controller.plan(batch()).entries == ()


def test_off_stays_off() -> None:
    assert OffController().plan(batch(view(override=5))).entries == (PlanEntry(0, "off", 0, Reason.OFF),)


def test_scripted() -> None:
    controller = ScriptedController("x", [2, 0, 5])
    numbers = [controller.plan(batch(view(room=3))).entries[0].num_tokens for _ in range(3)]
    assert numbers == [2, 0, 3]
    with pytest.raises(RuntimeError, match="no length left"):
        controller.plan(batch(view()))


def test_registry() -> None:
    assert isinstance(create_controller("off"), OffController)
    create_controller("fixed", proposer="ngram", num_speculative_tokens=3)
    with pytest.raises(UsageError, match="needs the option 'proposer'"):
        create_controller("fixed")
    with pytest.raises(UsageError, match="no option 'k'"):
        create_controller("fixed", k=3)


@pytest.mark.parametrize("number", [0, -1, True, 2.0, "4"])
def test_fixed_refuses(number: object) -> None:
    with pytest.raises(UsageError, match="num_speculative_tokens is"):
        create_controller("fixed", proposer="ngram", num_speculative_tokens=number)


@pytest.mark.parametrize(
    ("rooms", "max_draft_rows", "expected"),
    [
        ((9, 9, 9), 12, [4, 4, 4]),
        ((9, 9, 9), 6, [2, 2, 2]),
        ((9, 9, 9), 7, [2, 2, 3]),
        ((0, 9, 9), 7, [0, 3, 4]),
        ((9, 1, 9), 6, [2, 1, 3]),
        ((9, 9, 9), 0, [0, 0, 0]),
    ],
)
def test_rows_of_a_step_are_shared(rooms: tuple[int, ...], max_draft_rows: int, expected: list[int]) -> None:
    views = [view(i, room) for i, room in enumerate(rooms)]
    plan = FixedController("ngram", 4).plan(batch(*views, max_draft_rows=max_draft_rows))
    assert [entry.num_tokens for entry in plan.entries] == expected
    assert all(entry.proposer == ("ngram" if entry.num_tokens else "off") for entry in plan.entries)
