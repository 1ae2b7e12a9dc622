"""Files of prompts: Spec-Bench questions, JSON lines with a `prompt`, or text with one prompt a line."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import PacelineError, UsageError


@dataclass(frozen=True, slots=True)
class PromptLine:
    """`turns`: what the user says, one after the other; a plain prompt is a single turn. `line` counts from 1."""

    line: int
    turns: tuple[str, ...]


def read_prompts(path: str | Path) -> list[PromptLine]:
    """All prompts of a file, in its order. Lines without anything but spaces are skipped.

    Where the first other line begins with `{`, every line is a JSON object: with `turns`, a list of texts as
    Spec-Bench has it, or with `prompt`, a text; what else it holds is not looked at. In any other file a line is a
    prompt as it is.

    Raises UsageError for a file without prompts, and for a line that is none, by its number; PacelineError for a file
    that cannot be read.
    """
    lines = list(_lines(path))
    if not lines:
        raise UsageError(f"{path} holds no prompt; expected at least one line that is not empty")
    if not lines[0][1].lstrip().startswith("{"):
        return [PromptLine(number, (line,)) for number, line in lines]
    return [PromptLine(number, _turns(line, f"line {number} of {path}")) for number, line in lines]


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise PacelineError(f"{path} cannot be read: {error.strerror or error}") from error
    # Split at line feeds alone: a prompt may hold other characters that end lines elsewhere.
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            line = raw.removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"line {number} of {path} is not valid UTF-8: {error.reason}; convert the file") from error
        if line.strip():
            yield number, line


def _turns(line: str, where: str) -> tuple[str, ...]:
    try:
        value: Any = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(
            f"{where} is no JSON: {error}; the file begins with an object, so each line must be one"
        ) from None
    expected = 'expected an object with "prompt", a text, or "turns", a list of texts'
    if not isinstance(value, dict) or ("prompt" in value) == ("turns" in value):
        raise UsageError(f"{where} is {line!r:.80}; {expected}, and not both")
    turns = [value["prompt"]] if "prompt" in value else value["turns"]
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, str) and turn for turn in turns):
        raise UsageError(f"{where} is {line!r:.80}; {expected}, none of them empty")
    return tuple(turns)
