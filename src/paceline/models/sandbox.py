"""The Jinja environment in which chat templates run: no way out of the sandbox, and no way to fill the memory.

A template comes with a model file, so it is somebody else's program.
"""

import json
from collections.abc import Sized
from typing import Any, Never

from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_OUTPUT = 16 << 20  # characters
_MAX_EXPONENT = 64


class TemplateRefusalError(Exception):
    """The template itself refused the messages, through `raise_exception`."""


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """What chat templates expect: blocks trimmed, `raise_exception`, and a `tojson` that leaves characters alone."""

    intercepted_binops = frozenset({"+", "*", "**"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        self.globals["raise_exception"] = _refuse
        self.filters["tojson"] = _to_json

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and not (_is_small(left) and _is_small(right)):
            raise SecurityError("a power is too large")
        if operator == "*" and _length(left) * _factor(right) + _length(right) * _factor(left) > MAX_OUTPUT:
            raise SecurityError("a repetition is too long")
        if operator == "+" and _length(left) + _length(right) > MAX_OUTPUT:
            raise SecurityError("a text is too long")
        return super().call_binop(context, operator, left, right)


def _is_small(number: Any) -> bool:
    return isinstance(number, int | float) and abs(number) <= _MAX_EXPONENT


def _length(value: Any) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _factor(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _refuse(message: object = "no reason given") -> Never:
    raise TemplateRefusalError(str(message))


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
