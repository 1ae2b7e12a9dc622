"""Filters of chat templates that work on lists and mappings, each with its cost."""

from collections.abc import Callable, Mapping
from typing import Any

from paceline.models.chat.sandbox import methods
from paceline.models.chat.sandbox import text as marked
from paceline.models.chat.sandbox.arithmetic import add
from paceline.models.chat.sandbox.budget import Budget
from paceline.models.chat.sandbox.text_methods import as_text, join_texts
from paceline.models.chat.sandbox.values import (
    Function,
    Lazy,
    TemplateError,
    Undefined,
    are_equal,
    kind,
    measure,
    members,
    to_text,
)

_EMPTY = marked.own("")


def _first(budget: Budget, value: Any) -> Any:
    return methods.item(value, 0, budget) if isinstance(value, str) else _end(members(value, budget), 0)


def _last(budget: Budget, value: Any) -> Any:
    return methods.item(value, -1, budget) if isinstance(value, str) else _end(members(value, budget), -1)


def _end(values: Any, index: int) -> Any:
    return values[index] if values else Undefined("an item of an empty list")


def as_list(budget: Budget, value: Any) -> list[Any]:
    found = members(value, budget)
    budget.make_list(len(found))
    return list(found)


def _items(budget: Budget, value: Any) -> Lazy:
    if isinstance(value, Undefined):
        return Lazy()
    if not isinstance(value, dict):
        raise TemplateError(f"'items' needs a mapping, not {kind(value)}")
    return Lazy(methods.items(budget, value))


def _reverse(budget: Budget, value: Any) -> Any:
    if isinstance(value, str):
        budget.write([value])
        return marked.cut(value, slice(None, None, -1))
    return Lazy(reversed(as_list(budget, value)))


def _join(budget: Budget, value: Any, d: Any = _EMPTY, attribute: Any = None) -> str:
    found = members(value, budget)
    if attribute is not None:
        found = [path(budget, item, attribute) for item in found]
    return join_texts(budget, to_text(d, budget), [to_text(item, budget) for item in found])


def _batch(budget: Budget, value: Any, linecount: int, fill_with: Any = None) -> Lazy:
    found = as_list(budget, value)
    if not isinstance(linecount, int) or not 1 <= linecount <= 1000:
        raise TemplateError("'batch' needs a number of items from 1 to 1000")
    budget.make_list(9 * len(found) + linecount)
    batches = Lazy(found[start : start + linecount] for start in range(0, len(found), linecount))
    if batches and fill_with is not None:
        batches[-1] += [fill_with] * (linecount - len(batches[-1]))
    return batches


def path(budget: Budget, value: Any, attribute: Any) -> Any:
    """`value.a.b` for the attribute "a.b": entries only, never methods."""
    parts = [attribute] if isinstance(attribute, int) else as_text(attribute, "an attribute").split(".")
    for part in parts:
        budget.step()
        key = int(part) if isinstance(part, str) and part.isdecimal() and len(part) < 10 else part
        found = methods.item(value, key, budget)
        value = Undefined(str(part)[:40]) if isinstance(found, Function) else found
    return value


def _keyed(budget: Budget, values: list[Any], attribute: Any, case_sensitive: bool) -> list[tuple[Any, Any]]:
    """Each value behind what it is to be compared by; charged for comparing them all."""

    def key(value: Any) -> Any:
        found = value if attribute is None else path(budget, value, attribute)
        return found.lower() if isinstance(found, str) and not case_sensitive else found

    size = sum(measure(value, budget) for value in values)
    budget.make(5 * size + 100 * len(values))
    budget.step((len(values) + size // 16) * len(values).bit_length())
    return [(key(value), value) for value in values]


def _sort(
    budget: Budget, value: Any, reverse: bool = False, case_sensitive: bool = False, attribute: Any = None
) -> list[Any]:
    keyed = _keyed(budget, as_list(budget, value), attribute, case_sensitive)
    return [item for _, item in sorted(keyed, key=_by_first, reverse=bool(reverse))]


def _dict_sort(
    budget: Budget, value: Any, case_sensitive: bool = False, by: str = "key", reverse: bool = False
) -> list[Any]:
    if by not in ("key", "value") or not isinstance(value, dict):
        raise TemplateError("'dictsort' needs a mapping, and 'key' or 'value' to sort by")
    keyed = _keyed(budget, methods.items(budget, value), 0 if by == "key" else 1, case_sensitive)
    return [item for _, item in sorted(keyed, key=_by_first, reverse=bool(reverse))]


def _by_first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _unique(budget: Budget, value: Any, case_sensitive: bool = False, attribute: Any = None) -> Lazy:
    kept: list[tuple[Any, Any]] = []
    for key, item in _keyed(budget, as_list(budget, value), attribute, case_sensitive):
        if not any(are_equal(key, other, budget) for other, _ in _charged(budget, kept)):
            kept.append((key, item))
    return Lazy(item for _, item in kept)


def _charged(budget: Budget, values: list[Any]) -> list[Any]:
    budget.step(len(values))
    return values


def _extreme(sign: int) -> Callable[..., Any]:
    def run(budget: Budget, value: Any, case_sensitive: bool = False, attribute: Any = None) -> Any:
        keyed = _keyed(budget, as_list(budget, value), attribute, case_sensitive)
        choose = min if sign < 0 else max
        return choose(keyed, key=_by_first)[1] if keyed else Undefined("an item of an empty list")

    return run


def _sum(budget: Budget, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    for item in members(value, budget):
        start = add(budget, start, item if attribute is None else path(budget, item, attribute))
    return start


LIST_FILTERS: Mapping[str, Callable[..., Any]] = {
    "batch": _batch,
    "dictsort": _dict_sort,
    "first": _first,
    "items": _items,
    "join": _join,
    "last": _last,
    "list": as_list,
    "max": _extreme(1),
    "min": _extreme(-1),
    "reverse": _reverse,
    "sort": _sort,
    "sum": _sum,
    "unique": _unique,
}
