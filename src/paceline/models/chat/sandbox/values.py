"""The values that a chat template works with, and what is common to them: truth, text, equality, members.

There are texts, numbers, None, lists, tuples, mappings and the few classes here. Nothing else ever becomes a value, and
the attributes of none are looked up with Python's `getattr`, so there is no way from a value into the interpreter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paceline.models.chat.sandbox.budget import ITEM_BYTES, LIST_BYTES, Budget, TemplateLimitError
from paceline.models.chat.sandbox.text import Text

_MAX_DEPTH = 64  # of lists and mappings in each other
_CHARACTER_BYTES = 80  # of a text of one character


class TemplateError(Exception):
    """A template did what makes no sense, such as adding to an undefined value."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """What a name without a value gives; all are equal."""

    name: str

    def __repr__(self) -> str:
        return "Undefined"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Undefined)

    def __hash__(self) -> int:
        return 0


class Record:
    """Something with members of its own, and nothing else to it."""

    def member(self, name: str) -> Any:
        return Undefined(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()}>"


class Namespace(Record):
    """What `namespace(…)` gives: a mapping whose members a template may set."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.members = members

    def member(self, name: str) -> Any:
        return self.members.get(name, Undefined(name))


class Lazy(list[Any]):
    """What Jinja computes item by item: true even where it is empty, and without a length."""


@dataclass(frozen=True, slots=True)
class Function:
    """Something to call, with its arguments as Python would bind them."""

    name: str
    run: Callable[..., Any]

    def __repr__(self) -> str:
        return "<function>"


def kind(value: object) -> str:
    """How messages call a value."""
    if isinstance(value, Text):
        return "str"
    return "None" if value is None else type(value).__name__.lower()


def is_true(value: object) -> bool:
    return isinstance(value, Lazy) or (bool(value) and not isinstance(value, Undefined))


def defined(value: Any) -> Any:
    if isinstance(value, Undefined):
        raise TemplateError(f"{value.name!r} is undefined")
    return value


def members(value: Any, budget: Budget) -> list[Any] | tuple[Any, ...]:
    """The items that a loop over the value sees, charged one by one."""
    if isinstance(value, list | tuple):
        budget.step(len(value))
        return value
    if isinstance(value, dict | str | range):
        budget.step(len(value))
        budget.make(LIST_BYTES + len(value) * (ITEM_BYTES if isinstance(value, dict) else _CHARACTER_BYTES))
        return list(value)
    if isinstance(value, Undefined):
        return []
    raise TemplateError(f"{kind(value)} cannot be iterated")


def measure(value: Any, budget: Budget, margin: int = 0, depth: int = 0) -> int:
    """The characters and items of a value all the way down; charged, because lists may share members. Each item counts
    `margin` for every list and mapping around it."""
    budget.step()
    if isinstance(value, str):
        budget.read(len(value))
        return len(value) + 1 + margin * depth
    if isinstance(value, dict | list | tuple):
        if depth > _MAX_DEPTH:
            raise TemplateLimitError(f"its lists and mappings nest deeper than {_MAX_DEPTH}")
        size = sum(measure(item, budget, margin, depth + 1) for item in value)
        if isinstance(value, dict):
            size += sum(measure(item, budget, margin, depth + 1) for item in value.values())
        return size + 2 + margin * depth
    return 24 + margin * depth


def to_text(value: Any, budget: Budget) -> str:
    """What `{{ value }}` writes."""
    if isinstance(value, str):
        return value
    if isinstance(value, Undefined):
        return ""
    if value is None or isinstance(value, int | float):
        return str(value)
    if isinstance(value, dict | list | tuple | range):
        budget.make(20 * measure(value, budget))  # a character can take ten in a listing
        return str(value)
    raise TemplateError(f"a {kind(value)} cannot be written")


def are_equal(left: Any, right: Any, budget: Budget) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        budget.read(min(len(left), len(right)))
    elif isinstance(left, dict | list | tuple) and isinstance(right, dict | list | tuple):
        measure(left, budget)
        measure(right, budget)
    return bool(left == right)


def contains(container: Any, item: Any, budget: Budget) -> bool:
    """`item in container`."""
    if isinstance(container, str):
        if not isinstance(item, str):
            raise TemplateError(f"'in <text>' needs a text, not {kind(item)}")
        budget.search(len(container), len(item))
        return item in container
    if isinstance(container, dict):
        return as_key(item) in container
    if isinstance(container, range):
        whole = int(item) if isinstance(item, float) and item.is_integer() else item
        return isinstance(whole, int) and whole in container  # for anything else Python would walk the whole range
    return any(are_equal(member, item, budget) for member in members(container, budget))


def is_key(value: Any) -> bool:
    """Whether a mapping can have an entry of that name."""
    return value is None or isinstance(value, str | int | float | Undefined)


def as_key(value: Any) -> Any:
    if is_key(value):
        return value
    raise TemplateError(f"{kind(value)} cannot be the key of a mapping")
