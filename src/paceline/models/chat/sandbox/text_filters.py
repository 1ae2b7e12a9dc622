"""Filters of chat templates that work on texts or make them, each with its cost."""

import json
from collections.abc import Callable, Mapping
from html import escape as escape_html
from typing import Any

from paceline.models.chat.sandbox import text as marked
from paceline.models.chat.sandbox.budget import Budget, TemplateLimitError
from paceline.models.chat.sandbox.formatting import format_percent
from paceline.models.chat.sandbox.text_methods import TEXT_METHODS, as_text, replace
from paceline.models.chat.sandbox.values import (
    TemplateError,
    Undefined,
    kind,
    measure,
    to_text,
)

_MAX_INDENT = 16
_MAX_SEPARATOR = 8
_EMPTY = marked.own("")


def _trim(budget: Budget, value: Any, chars: str | None = None) -> str:
    stripped: str = TEXT_METHODS["strip"](budget, to_text(value, budget), chars)
    return stripped


def _replace(budget: Budget, value: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, old, new = (to_text(each, budget) for each in (value, old, new))
    return replace(budget, text, old, new, -1 if count is None else count)


def _by_method(name: str) -> Callable[..., Any]:
    def run(budget: Budget, value: Any) -> Any:
        return TEXT_METHODS[name](budget, to_text(value, budget))

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
    lines = TEXT_METHODS["splitlines"](budget, marked.concat([text, marked.own("\n")]))
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
    if separators is not None and not (
        len(separators) == 2 and all(len(as_text(each, "a separator")) <= 8 for each in separators)
    ):
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


def _escape(budget: Budget, value: Any) -> str:
    text = to_text(value, budget)
    budget.write([text], 6)
    return escape_html(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


def _format(budget: Budget, value: Any, /, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise TemplateError("'format' takes values or names, not both")
    return format_percent(budget, to_text(value, budget), kwargs or args)


def _string(budget: Budget, value: Any) -> str:
    return to_text(value, budget)


TEXT_FILTERS: Mapping[str, Callable[..., Any]] = {
    "capitalize": _by_method("capitalize"),
    "e": _escape,
    "escape": _escape,
    "format": _format,
    "indent": _indent,
    "lower": _by_method("lower"),
    "replace": _replace,
    "string": _string,
    "title": _title,
    "tojson": _to_json,
    "trim": _trim,
    "upper": _by_method("upper"),
}
