"""Writing an answer to standard output as it comes."""

import os
import sys

import typer

from paceline.api import Piece

# What a terminal would obey instead of showing; a model's text may hold anything.
_CONTROLS = dict.fromkeys((*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0)), "\ufffd")


def has_colour() -> bool:
    """Whether standard output is a terminal that shows colours and whose user wants them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class AnswerWriter:
    """Writes pieces as they come. `show_drafts`: accepted draft tokens in colour, where there is colour."""

    def __init__(self, *, show_drafts: bool = False) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._has_colour = show_drafts and has_colour()
        self._last = ""

    def write(self, piece: Piece) -> None:
        if not piece.text:
            return
        text = piece.text.translate(_CONTROLS) if self._is_terminal else piece.text
        self._last = text[-1]
        sys.stdout.write(colour_draft(text) if piece.is_draft and self._has_colour else text)
        sys.stdout.flush()

    def end(self) -> None:
        """End the last line, if the answer has not done so."""
        if self._last != "\n":
            sys.stdout.write("\n")
        sys.stdout.flush()


def colour_draft(text: str) -> str:
    return typer.style(text, fg=typer.colors.GREEN, bold=True)
