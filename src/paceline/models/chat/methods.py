"""The methods and attributes that chat templates may use of texts, lists and mappings, each with its cost."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from paceline.models.chat import text as marked
from paceline.models.chat.budget import ITEM_BYTES, LIST_BYTES, Budget
from paceline.models.chat.formatting import format_braces
from paceline.models.chat.values import (
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


# Methods of texts. Each takes the budget and the text, then what templates give it.


def _strip(budget: Budget, text: str, chars: str | None = None) -> str:
    budget.write([text])
    return marked.strip(text, _text_or_none(chars, "chars"))


def _left_strip(budget: Budget, text: str, chars: str | None = None) -> str:
    budget.write([text])
    return marked.strip(text, _text_or_none(chars, "chars"), "left")


def _right_strip(budget: Budget, text: str, chars: str | None = None) -> str:
    budget.write([text])
    return marked.strip(text, _text_or_none(chars, "chars"), "right")


def _split(budget: Budget, text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    _charge_parts(budget, text, _text_or_none(sep, "sep"))
    return marked.split(text, sep, maxsplit)


def _right_split(budget: Budget, text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    _charge_parts(budget, text, _text_or_none(sep, "sep"))
    budget.search(len(text), len(sep or ""), is_backwards=True)
    return marked.split(text, sep, maxsplit, is_from_right=True)


def _split_lines(budget: Budget, text: str, keepends: bool = False) -> list[str]:
    _charge_parts(budget, text, "\n")
    return marked.split_lines(text, bool(keepends))


def _charge_parts(budget: Budget, text: str, separator: str | None) -> None:
    budget.write([text, text])
    budget.search(len(text), len(separator or ""))
    parts = len(text) // 2 if separator is None else text.count(separator) if separator else 0
    budget.step(parts // 4)
    budget.make(LIST_BYTES + (ITEM_BYTES + 64) * parts)


def replace(budget: Budget, text: str, old: str, new: str, count: int = -1) -> str:
    old, new = _text(old, "old"), _text(new, "new")
    budget.search(len(text), len(old))
    times = len(text) + 1 if not old else text.count(old)
    budget.step(times // 4)
    budget.make((LIST_BYTES + 2 * ITEM_BYTES) * times)
    budget.write([text])
    budget.write([new], times)
    return marked.replace(text, old, new, count)


def join(budget: Budget, separator: str, iterable: Any) -> str:
    """Texts only, as Python's."""
    parts = [_text(member, "a member") for member in members(iterable, budget)]
    return join_texts(budget, separator, parts)


def join_texts(budget: Budget, separator: str, parts: list[str]) -> str:
    budget.make_list(2 * len(parts))
    budget.write([separator], len(parts))
    budget.write(parts)
    pieces: list[str] = []
    for part in parts:
        pieces += [part, separator]
    return marked.concat(pieces[:-1])


def _format(budget: Budget, text: str, /, *args: Any, **kwargs: Any) -> str:
    return format_braces(budget, text, args, kwargs)


def _mapped(function: Callable[[str], str]) -> Callable[[Budget, str], str]:
    def run(budget: Budget, text: str) -> str:
        budget.write([text], 3)  # one character can become three
        budget.read(8 * len(text))  # character by character
        return marked.alike(function(text), text)

    return run


def _asked(function: Callable[[str], bool]) -> Callable[[Budget, str], bool]:
    def run(budget: Budget, text: str) -> bool:
        budget.read(8 * len(text))
        return function(text)

    return run


def _matched(name: str) -> Callable[..., bool]:
    def run(budget: Budget, text: str, affix: Any, start: int | None = None, stop: int | None = None) -> bool:
        affixes = members(affix, budget) if isinstance(affix, tuple) else (affix,)
        budget.read(sum(len(_text(each, "a prefix or suffix")) for each in affixes))
        return bool(getattr(str, name)(text, tuple(affixes), start, stop))

    return run


def _searched(name: str) -> Callable[..., int]:
    def run(budget: Budget, text: str, sub: str, start: int | None = None, stop: int | None = None) -> int:
        budget.search(len(text), len(_text(sub, "what is searched")), is_backwards=name == "rfind")
        return int(getattr(str, name)(text, sub, start, stop))

    return run


def _without_prefix(budget: Budget, text: str, prefix: str) -> str:
    budget.write([text])
    return marked.cut(text, slice(len(prefix) if text.startswith(_text(prefix, "prefix")) else 0, None))


def _without_suffix(budget: Budget, text: str, suffix: str) -> str:
    budget.write([text])
    has_suffix = text.endswith(_text(suffix, "suffix"))
    return marked.cut(text, slice(0, len(text) - len(suffix) if has_suffix else None))


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


_TEXT_METHODS: Mapping[str, Callable[..., Any]] = {
    "capitalize": _mapped(str.capitalize),
    "count": _searched("count"),
    "endswith": _matched("endswith"),
    "find": _searched("find"),
    "format": _format,
    "index": _searched("index"),
    "isalnum": _asked(str.isalnum),
    "isalpha": _asked(str.isalpha),
    "isdigit": _asked(str.isdigit),
    "islower": _asked(str.islower),
    "isspace": _asked(str.isspace),
    "isupper": _asked(str.isupper),
    "join": join,
    "lower": _mapped(str.lower),
    "lstrip": _left_strip,
    "removeprefix": _without_prefix,
    "removesuffix": _without_suffix,
    "replace": replace,
    "rfind": _searched("rfind"),
    "rsplit": _right_split,
    "rstrip": _right_strip,
    "split": _split,
    "splitlines": _split_lines,
    "startswith": _matched("startswith"),
    "strip": _strip,
    "title": _mapped(str.title),
    "upper": _mapped(str.upper),
}
_LIST_METHODS: Mapping[str, Callable[..., Any]] = {"count": _count, "index": _index}
_MAPPING_METHODS: Mapping[str, Callable[..., Any]] = {"get": _get, "items": items, "keys": _keys, "values": _values}


def text_method(name: str) -> Callable[..., Any]:
    return _TEXT_METHODS[name]


def _methods_of(value: Any) -> Mapping[str, Callable[..., Any]]:
    if isinstance(value, str):
        return _TEXT_METHODS
    if isinstance(value, dict):
        return _MAPPING_METHODS
    return _LIST_METHODS if isinstance(value, list | tuple) else {}


def _text(value: Any, what: str) -> str:
    if isinstance(value, str):
        return value
    raise TemplateError(f"{what} must be a text, not {kind(value)}")


def _text_or_none(value: Any, what: str) -> str | None:
    return None if value is None else _text(value, what)
