"""Operators of chat templates: `+`, `*` and the like, and comparisons, each charged before it is computed."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from paceline.models.chat.sandbox import text as marked
from paceline.models.chat.sandbox.budget import Budget, TemplateLimitError, check_bits
from paceline.models.chat.sandbox.formatting import format_percent
from paceline.models.chat.sandbox.values import TemplateError, are_equal, contains, defined, kind, measure

_MAX_POWER = 64


def add(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        budget.write([left, right])
        return marked.concat([left, right])
    for sequence in (list, tuple):
        if isinstance(left, sequence) and isinstance(right, sequence):
            budget.make_list(len(left) + len(right))
            return sequence([*left, *right])
    return _compute(operator.add, "+", left, right)


def multiply(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, str | list | tuple):
        left, right = right, left
    if isinstance(left, str) and isinstance(right, int):
        budget.write([left], right)
        return marked.repeat(left, right)
    if isinstance(left, list | tuple) and isinstance(right, int):
        budget.make_list(len(left) * max(right, 0))
        return left * right
    return _compute(operator.mul, "*", left, right)


def _modulo(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, str):
        return format_percent(budget, left, right)
    return _compute(operator.mod, "%", left, right)


def _power(_: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        if abs(right) > _MAX_POWER:
            raise TemplateLimitError(f"it computes powers above {_MAX_POWER}")
        check_bits(left.bit_length() * right)
    return _compute(operator.pow, "**", left, right)


def _plain(function: Callable[[Any, Any], Any], sign: str) -> Callable[[Budget, Any, Any], Any]:
    def run(_: Budget, left: Any, right: Any) -> Any:
        return _compute(function, sign, left, right)

    return run


def _compute(function: Callable[[Any, Any], Any], sign: str, left: Any, right: Any) -> Any:
    if not isinstance(defined(left), int | float) or not isinstance(defined(right), int | float):
        raise TemplateError(f"{sign} does not work on {kind(left)} and {kind(right)}")
    result = function(left, right)
    if isinstance(result, complex):
        raise TemplateError("a power has no real value")
    if isinstance(result, int):
        check_bits(result.bit_length())
    return result


def _ordered(function: Callable[[Any, Any], bool], sign: str) -> Callable[[Budget, Any, Any], bool]:
    def run(budget: Budget, left: Any, right: Any) -> bool:
        for types in (int | float, str, list, tuple):
            if isinstance(defined(left), types) and isinstance(defined(right), types):
                measure(left, budget)
                measure(right, budget)
                return function(left, right)
        raise TemplateError(f"{sign} does not work on {kind(left)} and {kind(right)}")

    return run


def _equal(budget: Budget, left: Any, right: Any) -> bool:
    return are_equal(left, right, budget)


def _unequal(budget: Budget, left: Any, right: Any) -> bool:
    return not are_equal(left, right, budget)


def _in(budget: Budget, left: Any, right: Any) -> bool:
    return contains(right, left, budget)


def _not_in(budget: Budget, left: Any, right: Any) -> bool:
    return not contains(right, left, budget)


OPERATORS: Mapping[str, Callable[[Budget, Any, Any], Any]] = {
    "Add": add,
    "Sub": _plain(operator.sub, "-"),
    "Mul": multiply,
    "Div": _plain(operator.truediv, "/"),
    "FloorDiv": _plain(operator.floordiv, "//"),
    "Mod": _modulo,
    "Pow": _power,
}
"""By the names of Jinja's nodes."""

COMPARISONS: Mapping[str, Callable[[Budget, Any, Any], bool]] = {
    "eq": _equal,
    "ne": _unequal,
    "lt": _ordered(operator.lt, "<"),
    "lteq": _ordered(operator.le, "<="),
    "gt": _ordered(operator.gt, ">"),
    "gteq": _ordered(operator.ge, ">="),
    "in": _in,
    "notin": _not_in,
}
"""By the names of Jinja's operands."""
