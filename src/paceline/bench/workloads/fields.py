"""Fields of a record, checked. Every failure is a RecordError that names the key, what it holds and what was expected.

An optional field that is null is one that is not there.
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from reprlib import Repr
from typing import Any

from paceline.bench.base import Message
from paceline.bench.workloads.base import RecordError
from paceline.checks import is_integer

MAX_SECONDS = 1e9  # neither infinity nor the time of day on a calendar
MAX_SHOWN = 60  # characters
ROLES = ("system", "user", "assistant")
CLOSE = 0.85  # "max_token" is close to "max_tokens", and "idx" not to "id"


def shown(value: object) -> str:
    """`value` for a message, whatever its size and depth."""
    short = Repr()
    short.maxstring = MAX_SHOWN
    return short.repr(value)[:MAX_SHOWN]


def text(value: object, name: str) -> str:
    """`value`, if it is a text that says something and that can be encoded."""
    if not isinstance(value, str):
        raise RecordError(f"{name} is {shown(value)}; expected a text")
    if not value.strip():
        raise RecordError(f"{name} is empty; expected a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RecordError(
            f"{name} is no valid Unicode: it holds bytes that are no UTF-8, or half a surrogate pair"
        ) from None
    return value


def members(value: object, name: str, expected: str) -> list[Any]:
    """`value`, if it is a list with something in it."""
    if not isinstance(value, list) or not value:
        raise RecordError(f"{name} is {shown(value)}; expected a list of {expected}, at least one")
    return value


def required(fields: Mapping[str, Any], key: str) -> Any:
    if fields.get(key) is None:
        found = "null" if key in fields else f"missing; the keys are {shown_keys(fields)}"
        raise RecordError(f"{key} is {found}; expected it in every record")
    return fields[key]


def shown_keys(fields: Mapping[str, Any]) -> str:
    names = [f"{key!r:.40}" for key in fields]
    return (", ".join(names[:8]) + (", ..." if len(names) > 8 else "")) if names else "none"


def optional_text(fields: Mapping[str, Any], key: str) -> str | None:
    return None if fields.get(key) is None else text(fields[key], key)


def optional_count(fields: Mapping[str, Any], key: str) -> int | None:
    value = fields.get(key)
    if value is not None and not is_integer(value, 1):
        raise RecordError(f"{key} is {shown(value)}; expected an integer of at least 1")
    return value


def identifier(value: object, key: str) -> str:
    """An id: a text or an integer."""
    return str(value) if is_integer(value, 0) else text(value, key)


def seconds(value: object, key: str) -> float:
    """A time since the beginning."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
        raise RecordError(f"{key} is {shown(value)}; expected seconds since the beginning, from 0 to {MAX_SECONDS:g}")
    return float(value)


def messages(value: object, key: str) -> tuple[Message, ...]:
    return tuple(_message(member, f"{key}[{i}]") for i, member in enumerate(members(value, key, "messages")))


def _message(value: object, name: str) -> Message:
    if not isinstance(value, dict):
        raise RecordError(f'{name} is {shown(value)}; expected {{"role": ..., "content": ...}}')
    role = value.get("role")
    if role not in ROLES:
        raise RecordError(f"{name}.role is {shown(role)}; expected one of {', '.join(ROLES)}")
    return Message(role, text(value.get("content"), f"{name}.content"))


def check_spelling(fields: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise for a key that is almost a known one: it would be ignored, and was hardly meant to be."""
    for key in fields:
        if key not in known:
            close = get_close_matches(key.casefold().replace("-", "_").strip(), known, n=1, cutoff=CLOSE)
            if close:
                raise RecordError(f"the key {key!r:.60} is unknown; did you mean {close[0]!r}?")
