"""A result as JSON: written whole or not at all, and read with every field checked."""

import dataclasses
import errno
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.bench.result import FORMAT, BlockSums, Result, Run
from paceline.bench.result_decoding import FieldError, decode
from paceline.errors import UsageError

_FORMAT_FIELD = "format"


def to_json(result: Result) -> dict[str, Any]:
    """Plain JSON values, `format` first. Raises ValueError for a number that JSON does not have."""
    content = {_FORMAT_FIELD: FORMAT, **dataclasses.asdict(result)}
    _check_finite(content, "")
    return content


def from_json(content: object) -> Result:
    """Raises UsageError, naming the field, for what is no result or one of another format."""
    if not isinstance(content, dict) or _FORMAT_FIELD not in content:
        raise UsageError('expected a result of `paceline bench --json`, an object with a field "format"')
    values = dict(content)
    found = values.pop(_FORMAT_FIELD)
    if found != FORMAT or isinstance(found, bool):
        raise UsageError(f"format is {found!r:.60}; this version reads format {FORMAT}: measure again")
    try:
        result: Result = decode(Result, values, "")
    except FieldError as error:
        raise UsageError(str(error)) from error
    _check_places(result)
    return result


def _check_places(result: Result) -> None:
    """Every run and block is of one load, and of another place than all others. Raises UsageError."""
    places: dict[str, Sequence[Run | BlockSums]] = {"runs": result.runs, "blocks": result.blocks}
    for name, parts in places.items():
        seen = set[tuple[object, ...]]()
        for i, part in enumerate(parts):
            if (part.concurrency is None) == (part.request_rate is None):
                raise UsageError(
                    f"{name}[{i}] has to have one of concurrency and request_rate; expected the other null"
                )
            index = part.index if isinstance(part, BlockSums) else None
            place = (part.task_class, part.mode, part.concurrency, part.request_rate, index)
            if place in seen:
                raise UsageError(f"{name}[{i}] is there twice; expected each class, mode and load once")
            seen.add(place)


def write_result(result: Result, path: Path) -> None:
    """Replaces a file that is there, in one step. Raises UsageError where the path cannot be written."""
    text = json.dumps(to_json(result), indent=1, allow_nan=False) + "\n"
    write_text(text, path)


def write_text(text: str, path: Path) -> None:
    """Replaces a file that is there, in one step. Raises UsageError where the path cannot be written."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a terminal: nothing to replace
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path.resolve(), text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}; name a file in a folder of yours") from error


def check_writable(path: Path) -> None:
    """Raises UsageError where `write_text` would, as far as that can be told before there is a text."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        else:
            _replace(path.resolve(), None)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}; name a file in a folder of yours") from error


def _replace(path: Path, text: str | None) -> None:
    """With no text only try whether it could be done."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text or "", encoding="utf-8")
        if text is not None:
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_result(path: Path) -> Result:
    """Raises UsageError, naming the file and the field, for what cannot be read or is no result."""
    try:
        content = json.loads(path.read_bytes())
        _check_finite(content, "")
        return from_json(content)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:  # no JSON, or not UTF-8
        raise UsageError(f"{path} is no JSON: {error}; expected a result of `paceline bench --json`") from error


def _check_finite(value: object, place: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place} is {value}, which JSON does not have")
    if isinstance(value, Mapping):
        for name, each in value.items():
            _check_finite(each, f"{place}.{name}" if place else str(name))
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            _check_finite(each, f"{place}[{i}]")
