"""The progress bar: only on a terminal, only for what lasts, and gone afterwards."""

import io
import sys
from collections.abc import Iterator

import pytest

from paceline.cli import progress
from paceline.cli.progress import BarProgress, terminal_progress
from paceline.models import SilentProgress


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fake_terminal(monkeypatch: pytest.MonkeyPatch) -> FakeTerminal:
    """To be called in the test itself: pytest puts its own streams in place between fixtures and test."""
    terminal = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time that the bar reads from its clock; the test sets it."""
    now = [100.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    yield now


def test_silent_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(terminal_progress(), SilentProgress)


def test_nothing_for_what_is_quick(monkeypatch: pytest.MonkeyPatch, seconds: list[float]) -> None:
    screen = fake_terminal(monkeypatch)
    bar = terminal_progress()
    bar.begin("Packing", 10)
    for done in range(11):
        bar.update(done)
        seconds[0] += 0.02
    bar.end()
    assert screen.getvalue() == ""


@pytest.mark.parametrize("total", [10, None, 3])
def test_a_bar_for_what_lasts(monkeypatch: pytest.MonkeyPatch, seconds: list[float], total: int | None) -> None:
    screen = fake_terminal(monkeypatch)
    bar = BarProgress()
    for description in ("Fetching", "Packing"):
        bar.begin(description, total)
        for done in range(11):
            seconds[0] += 0.2
            bar.update(done)
        assert description in screen.getvalue()
        bar.end()
    shown = screen.getvalue()
    assert ("50%" in shown) is (total == 10)
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")  # the cursor comes back


def test_ending_twice_and_early(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = fake_terminal(monkeypatch)
    bar = BarProgress()
    bar.end()
    bar.begin("Packing", 10)
    bar.end()
    bar.end()
    assert screen.getvalue() == ""
