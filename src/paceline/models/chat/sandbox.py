"""The Jinja environment in which chat templates run: no way out of the sandbox, and the plain ways to fill it closed.

A template comes with a model file, so it is somebody else's program. Bounded are its output, each result of `+`, `*`,
`**`, `%` and `~` and of the text methods and filters that commonly make text longer, and the items of all ranges
together. Not bounded yet are its time, the sum of what it keeps, and the rarer filters (`batch`, `slice`, `tojson` of
nested lists): a template made to do harm can still hang this process or fill its memory.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, Never

from jinja2 import nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import make_attrgetter
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

_MAX_OUTPUT = 16 << 20  # characters beside those of the messages
_MAX_RANGES = 100_000  # items of all ranges of one rendering
_MAX_EXPONENT = 64
_MAX_INDENT = 16
_LIMIT = "paceline_limit"  # the variable that holds the longest text of one rendering


class TemplateRefusalError(Exception):
    """The template itself refused the messages, through `raise_exception`."""


def max_output(num_characters: int) -> int:
    """The most that a template may write for messages of so many characters, which are no fault of its own."""
    return _MAX_OUTPUT + num_characters


def limits(max_size: int) -> dict[str, Any]:
    """The variables that bound one rendering."""
    return {_LIMIT: max_size, "range": _bounded_range()}


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """What chat templates expect: blocks trimmed, `raise_exception`, and a `tojson` that leaves characters alone.

    Render with the variables of `limits`.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        del self.globals["lipsum"]
        self.globals["raise_exception"] = _refuse
        self.filters["tojson"] = _to_json
        for name, bound in _FILTERS.items():
            self.filters[name] = _bounded_filter(self, name, bound)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _ConcatAsJoin().visit(super()._parse(source, name, filename))
        return tree

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and not (_is_small(left) and _is_small(right)):
            raise SecurityError("a power is too large")
        if operator == "*":
            _require(context, _length(left) * _factor(right) + _length(right) * _factor(left))
        if operator == "+":
            _require(context, _length(left) + _length(right))
        if operator == "%" and isinstance(left, str):
            _require(context, _formatted(left, right))
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        method = getattr(function, "__wrapped__", function)  # the sandbox wraps `format`
        text, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if isinstance(text, str) and name in _METHODS:
            if name == "join":
                args = tuple(list(items) for items in args)  # an iterator can be read only once
            _require(context, _METHODS[name](text, *args, **kwargs))
        return super().call(context, function, *args, **kwargs)


class _ConcatAsJoin(NodeTransformer):
    """Turns `a ~ b` into `[a, b] | join`, which means the same and is bounded."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802 (named after the node)
        self.generic_visit(node)
        return nodes.Filter(nodes.List(node.nodes), "join", [], [], None, None, lineno=node.lineno)


def _require(context: Context, size: int) -> None:
    if size > context.parent[_LIMIT]:
        raise SecurityError("a text is too long")


def _bounded_range() -> Callable[..., range]:
    used = 0

    def bounded(*bounds: int) -> range:
        nonlocal used
        result = range(*bounds)
        used += len(result)
        if used > _MAX_RANGES:
            raise SecurityError(f"its ranges have more than {_MAX_RANGES} items")
        return result

    return bounded


def _bounded_filter(environment: TemplateEnvironment, name: str, bound: Callable[..., int]) -> Callable[..., Any]:
    plain = f"plain {name}"  # a name that no template can write
    environment.filters[plain] = environment.filters[name]

    @pass_context
    def bounded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "join":
            value = _members(environment, value, *args[1:], kwargs.pop("attribute", None))
            args = args[:1]
        _require(context, bound(value, *args, **kwargs))
        return environment.call_filter(plain, value, args, kwargs, context)

    return bounded


def _members(environment: TemplateEnvironment, items: Iterable[Any], *attributes: Any) -> list[Any]:
    """What `join` joins, as a list, because an iterator can be read only once."""
    attribute = next((name for name in attributes if name is not None), None)
    return list(items if attribute is None else map(make_attrgetter(environment, attribute), items))


# The most characters that a method of a text or a filter can make of its arguments.


def _padded(text: Any, width: int = 80, _fill: str = " ") -> int:
    return _length(text) + width


def _with_tabs(text: str, tabsize: int = 8) -> int:
    return len(text) + text.count("\t") * tabsize


def _replaced(text: Any, old: Any, new: Any, _count: int | None = None) -> int:
    return _length(text) + str(text).count(str(old)) * _length(new)


def _joined(members: Sequence[object], separator: object) -> int:
    return sum(map(_length, members)) + len(members) * _length(separator)


def _formatted(text: Any, values: Any) -> int:
    """For both kinds of formatting: every number may be a width, and every place may take the longest value."""
    members = list(
        values.values() if isinstance(values, Mapping) else values if isinstance(values, tuple) else [values]
    )
    widths = sum(map(int, _NUMBER.findall(str(text))))
    if _OUTER_WIDTH.search(str(text)):
        widths += sum(abs(member) for member in members if isinstance(member, int))
    places = str(text).count("%") + str(text).count("{")
    return _length(text) + widths + places * max(map(_length, members), default=0)


def _indented(text: Any, width: int | str = 4, *_: object, **__: object) -> int:
    return _length(text) + (len(str(text).splitlines()) + 1) * (width if isinstance(width, int) else len(width))


def _wrapped(text: Any, *args: object, wrapstring: object = None, **_: object) -> int:
    return _length(text) * (1 + max(_length(wrapstring), *map(_length, args), 1))


_NUMBER = re.compile(r"[0-9]+")
_OUTER_WIDTH = re.compile(r"%[^%a-zA-Z]*\*|:[^{}]*\{")  # a width that is itself a value
_METHODS: Mapping[str, Callable[..., int]] = {
    "center": _padded,
    "ljust": _padded,
    "rjust": _padded,
    "zfill": _padded,
    "expandtabs": _with_tabs,
    "replace": _replaced,
    "join": lambda text, items: _joined(items, text),
    "format": lambda text, *args, **kwargs: _formatted(text, (*args, *kwargs.values())),
    "format_map": _formatted,
}
_FILTERS: Mapping[str, Callable[..., int]] = {
    "center": _padded,
    "format": lambda text, *args, **kwargs: _formatted(text, (*args, *kwargs.values())),
    "indent": _indented,
    "join": lambda items, d="": _joined(items, d),
    "replace": lambda s, old, new, _count=None, **_: _replaced(s, old, new),
    "wordwrap": _wrapped,
}


def _is_small(number: Any) -> bool:
    return isinstance(number, int | float) and abs(number) <= _MAX_EXPONENT


def _length(value: Any) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _factor(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _refuse(message: object = "no reason given") -> Never:
    raise TemplateRefusalError(str(message))


def _to_json(value: Any, indent: int | None = None) -> str:
    if indent is not None and indent > _MAX_INDENT:
        raise SecurityError("an indent is too wide")
    return json.dumps(value, ensure_ascii=False, indent=indent)
