"""The methods and attributes that chat templates may use of texts, lists and mappings, each with its cost."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from paceline.models.chat.sandbox import text as marked
from paceline.models.chat.sandbox.budget import Budget
from paceline.models.chat.sandbox.text_methods import TEXT_METHODS
from paceline.models.chat.sandbox.values import (
    Function,
    Record,
    TemplateError,
    Undefined,
    are_equal,
    as_key,
    defined,
    is_key,
    kind,
    members,
)


def attribute(value: Any, name: str, budget: Budget) -> Any:
    """`value.name`: a method where there is one, else the entry of that name."""
    methods = _methods_of(defined(value))
    if name in methods:
        return Function(name, partial(methods[name], budget, value))
    return _entry(value, name)


def item(value: Any, key: Any, budget: Budget) -> Any:
    """`value[key]`: an entry where there is one, else the method of that name. `key` may be a slice."""
    defined(value)
    if isinstance(key, slice):
        return _slice(value, key, budget)
    if isinstance(value, str | list | tuple | range) and isinstance(key, int):
        if not -len(value) <= key < len(value):
            return Undefined(f"item {key}")
        return marked.cut(value, slice(key, key + 1 or None)) if isinstance(value, str) else value[key]
    found = _entry(value, key)
    methods = _methods_of(value)
    if isinstance(found, Undefined) and isinstance(key, str) and key in methods:
        return Function(key, partial(methods[key], budget, value))
    return found


def _entry(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        return value.get(key, Undefined(str(key)[:40])) if is_key(key) else Undefined(kind(key))
    if isinstance(value, Record) and isinstance(key, str):
        return value.member(key)
    return Undefined(str(key)[:40] if isinstance(key, str) else kind(key))


def _slice(value: Any, key: slice, budget: Budget) -> Any:
    if isinstance(value, str):
        budget.write([value])
        return marked.cut(value, key)
    if isinstance(value, list | tuple):
        part = range(len(value))[key]
        budget.make_list(len(part))
        return value[key]
    raise TemplateError(f"{kind(value)} cannot be sliced")


# Methods of lists and mappings.


def _index(budget: Budget, values: list[Any], value: Any) -> int:
    for index, member in enumerate(members(values, budget)):
        if are_equal(member, value, budget):
            return index
    raise TemplateError("the value is not in the list")


def _count(budget: Budget, values: list[Any], value: Any) -> int:
    return sum(are_equal(member, value, budget) for member in members(values, budget))


def _get(_: Budget, mapping: dict[Any, Any], key: Any, default: Any = None) -> Any:
    return mapping.get(as_key(key), default)


def items(budget: Budget, mapping: dict[Any, Any]) -> list[tuple[Any, Any]]:
    budget.step(len(mapping))
    budget.make_list(9 * len(mapping))
    return list(mapping.items())


def _keys(budget: Budget, mapping: dict[Any, Any]) -> list[Any]:
    budget.make_list(len(mapping))
    return list(mapping)


def _values(budget: Budget, mapping: dict[Any, Any]) -> list[Any]:
    budget.make_list(len(mapping))
    return list(mapping.values())


_LIST_METHODS: Mapping[str, Callable[..., Any]] = {"count": _count, "index": _index}
_MAPPING_METHODS: Mapping[str, Callable[..., Any]] = {"get": _get, "items": items, "keys": _keys, "values": _values}


def _methods_of(value: Any) -> Mapping[str, Callable[..., Any]]:
    if isinstance(value, str):
        return TEXT_METHODS
    if isinstance(value, dict):
        return _MAPPING_METHODS
    return _LIST_METHODS if isinstance(value, list | tuple) else {}
