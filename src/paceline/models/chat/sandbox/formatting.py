"""`'%s' % value` and `'{}'.format(value)` for chat templates: plain fields, no attributes, items or wide padding."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.models.chat.sandbox import text as marked
from paceline.models.chat.sandbox.budget import Budget, TemplateLimitError
from paceline.models.chat.sandbox.values import TemplateError, kind, to_text

_PERCENT = re.compile(r"%(?:\(([A-Za-z_]\w{0,40})\))?([-+ #0]{0,4}[0-9]{0,2}(?:\.[0-9]{1,2})?)([sdifgexX%])")
_BRACES = re.compile(r"\{\{|\}\}|\{(\w{0,40})(?::([^{}]{0,12}))?\}")
_FORMAT = re.compile(r"(?:[^0-9a-zA-Z]?[<>^])?[-+ ]?0?[0-9]{0,2},?(?:\.[0-9]{1,2})?[sdfgexX%]?")


def format_percent(budget: Budget, text: str, values: Any) -> str:
    is_named = isinstance(values, dict)
    given = list(values) if isinstance(values, tuple) else [values]
    next_value = iter(given)
    pieces: list[str] = []
    for literal, field in _fields(budget, text, _PERCENT, "%"):
        pieces.append(literal)
        if field is None:
            continue
        name, flags, conversion = field.groups()
        if conversion == "%":
            pieces.append(marked.cut(text, slice(field.end() - 1, field.end())))
            continue
        if (name is not None) != is_named:
            raise TemplateError("formatting by names needs a mapping, and only that")
        value: Any = values.get(name, _MISSING) if is_named else next(next_value, _MISSING)
        if value is _MISSING:
            raise TemplateError("there are too few values for a format")
        shown = to_text(value, budget) if conversion == "s" else value
        pieces.append(shown if conversion == "s" and not flags else _padded(budget, f"%{flags}{conversion}", shown))
    if not is_named and next(next_value, _MISSING) is not _MISSING:
        raise TemplateError("there are more values than a format has places")
    budget.write(pieces)
    return marked.concat(pieces)


def format_braces(budget: Budget, text: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    pieces: list[str] = []
    position = 0
    for literal, field in _fields(budget, text, _BRACES, "{}"):
        pieces.append(literal)
        if field is None:
            continue
        if field[0] in ("{{", "}}"):
            pieces.append(marked.cut(text, slice(field.start(), field.start() + 1)))
            continue
        name = field[1]
        if not name:
            name = str(position)
            position += 1
        if not (name in kwargs or (name.isdecimal() and int(name) < len(args))):
            raise TemplateError(f"a format has no value for {name!r}")
        value = args[int(name)] if name.isdecimal() else kwargs[name]
        pieces.append(_spelled(budget, value, field[2] or ""))
    budget.write(pieces)
    return marked.concat(pieces)


_MISSING = object()
_FIELD_STEPS = 4  # what Python does for one, in evaluations


def _fields(
    budget: Budget, text: str, pattern: re.Pattern[str], marks: str
) -> Sequence[tuple[str, re.Match[str] | None]]:
    """What stands before each field, and the field; then the rest."""
    budget.write([text])
    budget.step(_FIELD_STEPS * sum(map(text.count, marks)))
    found: list[tuple[str, re.Match[str] | None]] = []
    start = 0
    for match in [*pattern.finditer(text), None]:
        stop = len(text) if match is None else match.start()
        literal = marked.cut(text, slice(start, stop))
        if any(mark in literal for mark in marks):
            raise TemplateLimitError(f"the format {str(literal)[:40]!r} is none of those that chat templates may use")
        found.append((literal, match))
        start = len(text) if match is None else match.end()
    return found


def _padded(budget: Budget, form: str, value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise TemplateError(f"{form} cannot format {kind(value)}")
    budget.write([value] if isinstance(value, str) else ())
    budget.make(400)
    return form % (value,)


def _spelled(budget: Budget, value: Any, spec: str) -> str:
    if not spec:
        return to_text(value, budget)
    if not _FORMAT.fullmatch(spec) or not isinstance(value, str | int | float):
        raise TemplateLimitError(f"the format {spec[:40]!r} is none of those that chat templates may use")
    budget.write([value] if isinstance(value, str) else ())
    budget.make(400)
    return format(str(value) if isinstance(value, str) else value, spec)
