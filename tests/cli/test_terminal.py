"""What reaches the screen: no control characters from a model, whole last lines, colour only where it is wanted."""

import io
import sys

import pytest

from paceline import Piece
from paceline.cli.terminal import AnswerWriter


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(monkeypatch: pytest.MonkeyPatch, screen: io.StringIO, *pieces: Piece, show_drafts: bool = False) -> str:
    monkeypatch.setattr(sys, "stdout", screen)
    writer = AnswerWriter(show_drafts=show_drafts)
    for piece in pieces:
        writer.write(piece)
    writer.end()
    return screen.getvalue()


def test_a_terminal_does_not_obey_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    piece = Piece("a\x1b[2Jb\rc\td\ne\x9b", (1,), False)
    assert written(monkeypatch, FakeTerminal(), piece) == "a\ufffd[2Jb\ufffdc\td\ne\ufffd\n"
    assert written(monkeypatch, io.StringIO(), piece) == piece.text + "\n"


@pytest.mark.parametrize(
    ("texts", "end"), [((), "\n"), (("", ""), "\n"), (("a",), "\n"), (("a\n",), ""), (("a\n", ""), "")]
)
def test_the_last_line_is_ended_once(monkeypatch: pytest.MonkeyPatch, texts: tuple[str, ...], end: str) -> None:
    pieces = [Piece(text, (1,), False) for text in texts]
    assert written(monkeypatch, io.StringIO(), *pieces) == "".join(texts) + end


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_refused(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    draft = Piece("a", (1,), True)
    assert written(monkeypatch, FakeTerminal(), draft, show_drafts=True) == "\x1b[32m\x1b[1ma\x1b[0m\n"
    assert written(monkeypatch, FakeTerminal(), draft) == "a\n"
    assert written(monkeypatch, io.StringIO(), draft, show_drafts=True) == "a\n"
    monkeypatch.setenv(variable, value)
    assert written(monkeypatch, FakeTerminal(), draft, show_drafts=True) == "a\n"
