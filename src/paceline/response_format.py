"""What form an answer must have: the request's `response_format` as a value, checked but not compiled."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from paceline.errors import UsageError

MAX_SCHEMA_BYTES = 65536
MAX_GRAMMAR_BYTES = 32768  # of a regular expression too

FormatKind: TypeAlias = Literal["json_object", "json_schema", "regex", "grammar"]

_NAME = "response_format"
_TYPES = ("text", "json_object", "json_schema", "regex", "grammar")
_OPTIONS = "x-guidance"  # in a schema: the grammar library's own options, which are this package's to choose


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """`source`: the schema as JSON text, its keys in the order given; the regular expression; the grammar. Empty for
    any JSON object."""

    kind: FormatKind
    source: str = ""


def checked_format(given: object) -> ResponseFormat | None:
    """None for no constraint. Raises UsageError for anything but the forms that `SamplingParams` documents."""
    if given is None or isinstance(given, ResponseFormat):
        return given
    if not isinstance(given, Mapping):
        raise UsageError(f"{_NAME} is {given!r:.100}; expected None or a mapping with a type")
    kind = given.get("type")
    match kind:
        case "text":
            _check_keys(_NAME, given, {"type"})
            return None
        case "json_object":
            _check_keys(_NAME, given, {"type"})
            return ResponseFormat("json_object")
        case "json_schema":
            _check_keys(_NAME, given, {"type", "json_schema"})
            return ResponseFormat("json_schema", _schema(given.get("json_schema")))
        case "regex":
            _check_keys(_NAME, given, {"type", "pattern"})
            return ResponseFormat("regex", _pattern(given.get("pattern")))
        case "grammar":
            _check_keys(_NAME, given, {"type", "grammar"})
            return ResponseFormat("grammar", _text(f"{_NAME}.grammar", given.get("grammar"), "a Lark or GBNF grammar"))
    raise UsageError(f"{_NAME}.type is {kind!r:.100}; expected one of {', '.join(map(repr, _TYPES))}")


def _schema(given: object) -> str:
    where = f"{_NAME}.json_schema"
    if not isinstance(given, Mapping):
        raise UsageError(f"{where} is {given!r:.100}; expected a mapping with a schema")
    _check_keys(where, given, {"name", "description", "schema", "strict"})
    for key in ("name", "description"):
        if not isinstance(given.get(key, ""), str):
            raise UsageError(f"{where}.{key} is {given[key]!r:.100}; expected a text")
    if not (given.get("strict") is None or isinstance(given["strict"], bool)):
        raise UsageError(f"{where}.strict is {given['strict']!r:.100}; expected None, True or False")
    schema = given.get("schema")
    where = f"{where}.schema"
    if not isinstance(schema, Mapping):
        raise UsageError(f"{where} is {schema!r:.100}; expected a JSON schema, as a mapping")
    if _OPTIONS in schema:
        raise UsageError(f"{where} has the key {_OPTIONS!r}; leave it out, its options are not a caller's to choose")
    return _bounded(where, _as_json(where, schema), MAX_SCHEMA_BYTES)


def _as_json(where: str, schema: Mapping[Any, Any]) -> str:
    try:
        return json.dumps(dict(schema), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{where} cannot be written as JSON: {error}; expected a JSON schema") from None


def _pattern(given: object) -> str:
    where = f"{_NAME}.pattern"
    pattern = _text(where, given, "a regular expression")
    if (len(pattern) - len(pattern.rstrip("\\"))) % 2:  # the grammar library would leave it out
        raise UsageError(f"{where} ends in a backslash that escapes nothing; double it, or leave it out")
    return pattern


def _text(where: str, given: object, what: str) -> str:
    if not isinstance(given, str) or not given:
        raise UsageError(f"{where} is {given!r:.100}; expected {what}, a text of at least one character")
    if any("\ud800" <= character <= "\udfff" for character in given):
        raise UsageError(f"{where} is {given!r:.100}, with a lone surrogate; expected valid Unicode text")
    return _bounded(where, given, MAX_GRAMMAR_BYTES)


def _bounded(where: str, text: str, most: int) -> str:
    size = len(text.encode())
    if size > most:
        raise UsageError(f"{where} has {size:,} bytes; expected at most {most:,}")
    return text


def _check_keys(where: str, given: Mapping[Any, Any], known: set[str]) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"{where} has the key {key!r:.100}; expected {', '.join(map(repr, sorted(known)))}")
