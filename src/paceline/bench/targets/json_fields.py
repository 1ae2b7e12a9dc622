"""Fields of JSON that a server sent: of the kind that was expected, or an error that says what came instead."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.errors import PacelineError

MAX_COUNT = 10**15
MAX_INDEX_DIGITS = 4


class EndpointError(PacelineError):
    """A server could not be reached, refused, or sent what its interface does not allow."""


def decoded(text: str, what: str) -> Mapping[str, Any]:
    """The JSON object that `text` is; `what` names it in the error."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # the latter for brackets a thousand deep
        raise EndpointError(f"{what} is no JSON: {text[:200]!r}") from None
    if not isinstance(value, dict):
        raise EndpointError(f"{what} is {text[:200]!r}; expected a JSON object")
    return value


def fields(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object, empty where it is absent or null."""
    value = parent.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _unexpected(name, value, "an object")
    return value


def items(parent: Mapping[str, Any], name: str) -> Sequence[Any]:
    """An array, empty where it is absent or null."""
    value = parent.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _unexpected(name, value, "an array")
    return value


def text(parent: Mapping[str, Any], name: str) -> str:
    """A string, empty where it is absent or null."""
    value = parent.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _unexpected(name, value, "a string")
    return value


def number(parent: Mapping[str, Any], name: str) -> int | None:
    """A count, None where it is absent or null."""
    value = parent.get(name)
    return None if value is None else checked_count(name, value)


def checked_count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _unexpected(name, value, "an integer of at least 0")
    if value > MAX_COUNT:
        raise EndpointError(f"the server sent more than {MAX_COUNT:,} as {name!r}, which nobody has counted")
    return value


def checked_index(name: str, text: str) -> int:
    """A place in a draft, from its digits."""
    if not (text.isdecimal() and len(text) <= MAX_INDEX_DIGITS):
        raise EndpointError(f"the server tells {name!r} of {text!r:.60}; expected an integer below 10,000")
    return int(text)


def error_message(body: Mapping[str, Any]) -> str:
    """What a server says went wrong, in one of the usual shapes: `error.message`, `error`, `message` or `detail`."""
    error = body.get("error")
    found = error.get("message") if isinstance(error, dict) else error
    for told in (found, body.get("message"), body.get("detail")):
        if isinstance(told, str) and told.strip():
            return " ".join(told.split())[:500]
    return str(dict(body))[:500]


def _unexpected(name: str, value: object, expected: str) -> EndpointError:
    return EndpointError(f"the server sent {value!r:.100} as {name!r}; expected {expected}")
