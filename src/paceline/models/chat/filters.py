"""The filters that chat templates may use, each with its cost. Jinja's others are left out: `attr` and `random`, what
works with regular expressions or HTML, and what no template for conversations was seen to need."""

import json
import math
from collections.abc import Callable, Mapping
from html import escape as escape_html
from typing import Any

from paceline.models.chat import methods
from paceline.models.chat import text as marked
from paceline.models.chat.arithmetic import add
from paceline.models.chat.budget import Budget, TemplateLimitError, check_bits
from paceline.models.chat.formatting import format_percent
from paceline.models.chat.values import (
    Function,
    Lazy,
    TemplateError,
    Undefined,
    are_equal,
    defined,
    is_true,
    kind,
    measure,
    members,
    to_text,
)

_MAX_INDENT = 16
_MAX_DIGITS = 300  # of a text that is to be a number
_MAX_PRECISION = 15
_EMPTY = marked.own("")


def _default(_: Budget, value: Any, default_value: Any = _EMPTY, boolean: bool = False) -> Any:
    return default_value if isinstance(value, Undefined) or (boolean and not is_true(value)) else value


def _length(_: Budget, value: Any) -> int:
    if isinstance(value, Undefined):
        return 0
    if isinstance(value, Lazy) or not isinstance(value, str | list | tuple | dict | range):
        raise TemplateError(f"{'generator' if isinstance(value, Lazy) else kind(value)} has no length")
    return len(value)


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
    return methods.join_texts(budget, to_text(d, budget), [to_text(item, budget) for item in found])


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
    parts = [attribute] if isinstance(attribute, int) else _text(attribute).split(".")
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


def _trim(budget: Budget, value: Any, chars: str | None = None) -> str:
    stripped: str = methods.text_method("strip")(budget, to_text(value, budget), chars)
    return stripped


def _replace(budget: Budget, value: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, old, new = (to_text(each, budget) for each in (value, old, new))
    return methods.replace(budget, text, old, new, -1 if count is None else count)


def _by_method(name: str) -> Callable[..., Any]:
    def run(budget: Budget, value: Any) -> Any:
        return methods.text_method(name)(budget, to_text(value, budget))

    return run


def _title(budget: Budget, value: Any) -> str:
    text = to_text(value, budget)
    budget.write([text], 3)
    budget.step(len(text))
    letters, is_start = [], True
    for letter in text:
        letters.append(letter.upper() if is_start else letter.lower())
        is_start = letter.isspace() or letter in "-({[<"
    return marked.alike("".join(letters), text)


def _indent(budget: Budget, value: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    text = to_text(value, budget)
    margin = _margin(width)
    lines = methods.text_method("splitlines")(budget, marked.concat([text, marked.own("\n")]))
    budget.write([margin], len(lines) + 1)
    budget.step(len(lines))
    budget.write(lines)
    pieces: list[str] = []
    for index, line in enumerate(lines):
        is_indented = first if index == 0 else bool(line) or blank
        pieces += [marked.own("\n" if index else ""), margin if is_indented else _EMPTY, line]
    return marked.concat(pieces)


def _margin(width: Any) -> str:
    if isinstance(width, int) and width <= _MAX_INDENT:
        return marked.own(" " * width)
    if isinstance(width, str) and len(width) <= _MAX_INDENT:
        return width
    raise TemplateLimitError(f"an indent is wider than {_MAX_INDENT}")


def _to_json(
    budget: Budget,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    size = measure(value, budget, 0 if indent is None else len(_margin(indent)))
    if separators is not None and not (len(separators) == 2 and all(len(_text(each)) <= 8 for each in separators)):
        raise TemplateLimitError("the separators of 'tojson' are longer than 8")
    budget.make(6 * size)
    text = json.dumps(
        value,
        ensure_ascii=bool(ensure_ascii),
        indent=indent,
        separators=None if separators is None else tuple(separators),
        sort_keys=bool(sort_keys),
        default=_refuse_json,
    )
    budget.make(2 * len(text))
    return text


def _refuse_json(value: Any) -> Any:
    raise TemplateError(f"{'an undefined value' if isinstance(value, Undefined) else kind(value)} has no JSON form")


def _int(_: Budget, value: Any, default: Any = 0, base: int = 10) -> Any:
    if isinstance(defined(value), str) and len(value) > _MAX_DIGITS:
        return default
    try:
        number = int(value, base) if isinstance(value, str) else int(value)
    except (TypeError, ValueError, OverflowError):
        try:
            number = int(float(value))
        except (TypeError, ValueError, OverflowError):
            return default
    check_bits(number.bit_length())
    return number


def _float(_: Budget, value: Any, default: Any = 0.0) -> Any:
    if isinstance(defined(value), str) and len(value) > _MAX_DIGITS:
        return default
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return default


def _round(_: Budget, value: Any, precision: int = 0, method: str = "common") -> float:
    number = float(_number(value))
    if not isinstance(precision, int) or abs(precision) > _MAX_PRECISION:
        raise TemplateLimitError(f"'round' is asked for more than {_MAX_PRECISION} digits")
    if method == "common":
        return round(number, precision)
    if method not in ("ceil", "floor"):
        raise TemplateError("'round' goes by 'common', 'ceil' or 'floor'")
    scale = 10.0**precision
    return float((math.ceil if method == "ceil" else math.floor)(number * scale) / scale)


def _number(value: Any) -> Any:
    if isinstance(defined(value), int | float):
        return value
    raise TemplateError(f"expected a number, not {kind(value)}")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TemplateError(f"expected a text, not {kind(value)}")


def _escape(budget: Budget, value: Any) -> str:
    text = to_text(value, budget)
    budget.write([text], 6)
    return escape_html(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


def _format(budget: Budget, value: Any, /, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise TemplateError("'format' takes values or names, not both")
    return format_percent(budget, to_text(value, budget), kwargs or args)


def _safe(_: Budget, value: Any) -> Any:
    return value


def _string(budget: Budget, value: Any) -> str:
    return to_text(value, budget)


def _abs(_: Budget, value: Any) -> Any:
    return abs(_number(value))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "abs": _abs,
    "batch": _batch,
    "capitalize": _by_method("capitalize"),
    "count": _length,
    "d": _default,
    "default": _default,
    "dictsort": _dict_sort,
    "e": _escape,
    "escape": _escape,
    "first": _first,
    "float": _float,
    "format": _format,
    "indent": _indent,
    "int": _int,
    "items": _items,
    "join": _join,
    "last": _last,
    "length": _length,
    "list": as_list,
    "lower": _by_method("lower"),
    "max": _extreme(1),
    "min": _extreme(-1),
    "replace": _replace,
    "reverse": _reverse,
    "round": _round,
    "safe": _safe,
    "sort": _sort,
    "string": _string,
    "sum": _sum,
    "title": _title,
    "tojson": _to_json,
    "trim": _trim,
    "unique": _unique,
    "upper": _by_method("upper"),
}
"""Each takes the budget and the value, then what templates give it. `map`, `select` and their like, which run other
filters and tests, are the interpreter's."""
