"""The form that `paceline generate` asks of an answer, from its options."""

import json
from pathlib import Path
from typing import Any

from paceline.errors import UsageError


def response_format(json_schema: str | None, regex: str | None, grammar: Path | None) -> dict[str, Any] | None:
    """At most one of them is given. `json_schema`: JSON text, or the path of a file of it."""
    given = {"--json-schema": json_schema, "--regex": regex, "--grammar": grammar}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} are given; an answer has one form, leave all but one out")
    if json_schema is not None:
        return {"type": "json_schema", "json_schema": {"schema": _schema(json_schema)}}
    if regex is not None:
        return {"type": "regex", "pattern": regex}
    if grammar is not None:
        return {"type": "grammar", "grammar": _read("--grammar", grammar)}
    return None


def _schema(given: str) -> object:
    if not given.strip():
        raise UsageError(f"--json-schema is {given!r}; expected JSON text, or the path of a file of it")
    is_text = given.lstrip().startswith("{")
    text = given if is_text else _read("--json-schema", Path(given))
    try:
        return json.loads(text)
    except ValueError as error:
        where = "" if is_text else " holds text that"
        raise UsageError(f"--json-schema {given!r:.100}{where} is no JSON: {error}") from None
    except RecursionError:
        raise UsageError(f"--json-schema {given!r:.100} is nested too deeply") from None


def _read(option: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{option} {str(path)!r:.200} cannot be read: {error.strerror}") from None
    except ValueError as error:  # no UTF-8, or a name that no file can have
        raise UsageError(
            f"{option} {str(path)!r:.200} cannot be read: {error}; expected a text file in UTF-8"
        ) from None
