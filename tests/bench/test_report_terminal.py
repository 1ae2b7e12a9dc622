"""What a report shows on a terminal and in Markdown."""

import io
import re
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest
from report_results import full_result, hostile_result, minimal_result

from paceline.bench import report
from paceline.bench.report import LineView, Progress, TableView, live_view
from paceline.bench.report.tables import best_replays
from paceline.bench.result import ReplayRun

RESULT = full_result(("chat", "code editing"), ("ngram-4", "auto"), (1, 8), ())


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def _terminal_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns that shows colours."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", "COLUMNS": "80", "LINES": "50"}.items():
        monkeypatch.setenv(name, value)


def fake(monkeypatch: pytest.MonkeyPatch, name: str) -> FakeTerminal:
    """To be called in the test itself: pytest puts its own streams in place between fixtures and test."""
    terminal = FakeTerminal()
    monkeypatch.setattr(sys, name, terminal)
    return terminal


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def rows(text: str, title: str) -> list[list[str]]:
    """The cells of the table under `title`, cut at two blanks."""
    lines = text.split(f"{title} ", 1)[1].splitlines()[4:]
    found: list[list[str]] = []
    for line in lines:
        if re.match(r" c=| \d", line):
            found.append(re.split(r"\s{2,}", line.strip()))
        elif line.strip():
            break
    return found


@pytest.mark.parametrize(("done", "left"), [(0, None), (3, 63.0), (12, 0.0)])
def test_time_left(done: int, left: float | None) -> None:
    assert Progress(done, 12, 7.0 * done).remaining == left


@pytest.mark.usefixtures("_terminal_settings")
def test_live_view_is_chosen_by_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(live_view(), LineView)
    fake(monkeypatch, "stderr")
    assert isinstance(live_view(), TableView)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(live_view(), LineView)


def test_lines_come_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with LineView() as view:
        for done in range(13):
            view.update(Progress(done, 12, 7.0 * done), RESULT.runs if done else [])
    lines = stream.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == [f"{done} of 12 blocks" for done in (0, 3, 6, 9, 12)]
    assert lines[0] == "0 of 12 blocks, 0%, 0:00 passed"
    assert lines[1].startswith(
        "3 of 12 blocks, 25%, 0:21 passed, 1:03 left; off at c=1 61.3 tok/s; ngram-4 at c=1 1.24 ("
    )
    assert "chat" not in stream.getvalue()


@pytest.mark.usefixtures("_terminal_settings")
def test_live_table_updates_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = fake(monkeypatch, "stderr")
    with live_view() as view:
        view.update(Progress(0, 12, 0.0), [])
        assert "0 of 12 blocks, 0%" in plain(screen.getvalue())
        view.update(Progress(3, 12, 21.0), RESULT.runs)
        shown = plain(screen.getvalue())
        assert "3 of 12 blocks, 25%, 0:21 passed, 1:03 left" in shown
        wanted = ["c=1", "all", "ngram-4", "75.9", "1.24 (1.15 to 1.34)", "faster", "2.34", "100 %"]
        assert wanted in rows(shown, "So far")
    assert screen.getvalue().endswith("\x1b[2K")
    assert "\x1b[?25h" in screen.getvalue()


@pytest.mark.usefixtures("_terminal_settings")
def test_nothing_is_drawn_before_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = fake(monkeypatch, "stderr")
    with live_view():
        pass
    assert screen.getvalue() == ""


@pytest.mark.usefixtures("_terminal_settings")
def test_terminal_is_restored_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = fake(monkeypatch, "stderr")
    with pytest.raises(KeyboardInterrupt), live_view() as view:
        view.update(Progress(1, 12, 0.0), RESULT.runs)
        raise KeyboardInterrupt
    assert "\x1b[?25h" in screen.getvalue()


def test_last_tables(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_result(RESULT)
    text = capsys.readouterr().out
    assert "\x1b" not in text
    speed = rows(text, "Speed")
    assert [row[:3] for row in speed] == keys(("c=1", "c=8"), ("all", "chat", "code editing"))
    assert speed[1] == ["c=1", "all", "ngram-4", "75.9", "1.24 (1.15 to 1.34)", "faster", "3.20"]
    assert speed[0] == ["c=1", "all", "off", "61.3", "–", "–", "–"]
    assert rows(text, "Acceptance and text")[1] == ["c=1", "all", "ngram-4", "2.34", "48.3 %", "100 %", "123 MB"]
    assert rows(text, "Latency in ms")[1] == ["c=1", "all", "ngram-4", "40.2", "71.8", "13.2", "19.8"]
    assert "no mode was faster at any load" in text
    assert "Faster than plain decoding. Speedup 1.25 (1.16 to 1.35) over all classes at c=1 with auto" in text


def keys(loads: Sequence[str], classes: Sequence[str]) -> list[list[str]]:
    return [[load, name, mode] for load in loads for name in classes for mode in ("off", "ngram-4", "auto")]


@pytest.mark.usefixtures("_terminal_settings")
@pytest.mark.parametrize("no_colour", [True, False])
def test_colour_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch, no_colour: bool) -> None:
    if no_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    screen = fake(monkeypatch, "stdout")
    report.print_result(RESULT)
    has_colour = bool(re.search(r"\x1b\[3\d", screen.getvalue()))
    assert has_colour is not no_colour


@pytest.mark.usefixtures("_terminal_settings")
@pytest.mark.parametrize("columns", [30, 80])
def test_no_figure_is_cut_off_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    screen = fake(monkeypatch, "stdout")
    report.print_result(replace(RESULT, replay=(), advice=()))
    text = plain(screen.getvalue())
    assert "1.24 (1.15 to 1.34)  faster        3.20" in text
    if columns == 80:
        tables = text.split("Faster than")[0]
        assert max(map(len, tables.splitlines())) <= columns


def test_warnings_follow_the_headline(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [replace(run, identical_fraction=0.5) if run.mode != "off" else run for run in RESULT.runs]
    report.print_result(replace(RESULT, runs=runs, is_complete=False))
    last = capsys.readouterr().out.splitlines()[-3:]
    assert last[0].endswith("identical text 50.0 %.")
    assert last[1] == "The text is not that of plain decoding everywhere."
    assert last[2].startswith("Interrupted")


def test_a_result_of_nothing_much(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_result(minimal_result())
    report.print_result(replace(minimal_result(), runs=[]))
    assert capsys.readouterr().out.splitlines() == [
        "Plain decoding only. No other mode to set against it.",
        "Nothing was measured. The result holds no runs.",
    ]
    assert report.markdown(minimal_result()) == "**Plain decoding only.** No other mode to set against it.\n"


@pytest.mark.usefixtures("_terminal_settings")
def test_foreign_strings_cannot_order_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    screens = [fake(monkeypatch, "stdout"), fake(monkeypatch, "stderr")]
    report.print_result(hostile_result())
    with LineView() as view:
        view.update(Progress(1, 2, 1.0), hostile_result().runs)
    for screen in screens:
        text = screen.getvalue()
        assert "<script>" in text
        assert "\x1b[31m" not in text and "\x00" not in text and "\u202e" not in text
        text.encode()


def test_markdown_holds_the_same_tables() -> None:
    text = report.markdown(RESULT)
    assert text.startswith("**Faster than plain decoding.** Speedup 1.25 (1.16 to 1.35) over all classes")
    assert "| load | class | mode | tok/s | speedup (95 %) | verdict | ceiling |\n| --- | --- | --- | --: |" in text
    assert "| c=1 | all | ngram-4 | 75.9 | 1.24 (1.15 to 1.34) | faster | 3.20 |" in text
    titles = re.findall(r"^\*\*([^*]+)\*\*$", text, re.MULTILINE)
    assert titles == [
        *("Speed", "Acceptance and text", "Latency in ms", "Mode by class"),
        *("First differences", "Proposers on recorded answers", "Forwards of n rows"),
    ]
    assert text.endswith("- Energy was read from RAPL.\n")


def test_markdown_is_not_made_by_foreign_strings() -> None:
    text = report.markdown(hostile_result())
    assert "<script" not in text.replace("\\<script", "")
    lines = text.splitlines()
    bars = [len(re.findall(r"(?<!\\)\|", line)) for line in lines if line.startswith("|")]
    assert set(bars) == {6, 8, 10}  # one more than columns
    assert not re.search(r"(?<!\\)\]\(", text)


def test_failed_answers_and_differing_texts_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_result(replace(RESULT, notes=("3 answers failed; the first: too\x1b[31m long",)))
    shown = capsys.readouterr().out
    assert "3 answers failed; the first: too\ufffd[31m long" in shown
    assert RESULT.differences
    assert "First differences" in shown


def test_of_a_sweep_the_terminal_shows_the_best_of_each_class() -> None:
    def run(task_class: str, k: int, speedup: float | None) -> ReplayRun:
        return ReplayRun(task_class, "ngram", k, 3, 90, 1.0 + k / 10, 0.5, (0.5,), speedup)

    sweep = [run(name, k, 1 + k * (4 - k) / 10) for name in ("chat", "all") for k in (1, 2, 3)]
    assert [(each.task_class, each.num_speculative_tokens) for each in best_replays(sweep)] == [
        ("chat", 2),
        ("all", 1),
        ("all", 2),
        ("all", 3),
    ]
    unpredicted = [run("chat", k, None) for k in (1, 2, 3)]
    assert [each.num_speculative_tokens for each in best_replays(unpredicted)] == [3]


def test_what_follows_the_blocks_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with LineView() as view:
        view.say("Measuring forwards ...")
    assert capsys.readouterr().err == "Measuring forwards ...\n"
