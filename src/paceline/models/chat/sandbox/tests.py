"""The tests that chat templates may use behind `is`, and in `select` and its like."""

from collections.abc import Callable, Mapping
from typing import Any

from paceline.models.chat.sandbox.arithmetic import COMPARISONS
from paceline.models.chat.sandbox.budget import Budget
from paceline.models.chat.sandbox.values import Function, Lazy, TemplateError, Undefined, defined, is_true, kind


def _of_type(*types: type) -> Callable[[Budget, Any], bool]:
    def run(_: Budget, value: Any) -> bool:
        return isinstance(value, types)

    return run


def _is(wanted: object) -> Callable[[Budget, Any], bool]:
    def run(_: Budget, value: Any) -> bool:
        return value is wanted

    return run


def _defined(_: Budget, value: Any) -> bool:
    return not isinstance(value, Undefined)


def _undefined(_: Budget, value: Any) -> bool:
    return isinstance(value, Undefined)


def _integer(_: Budget, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _sequence(_: Budget, value: Any) -> bool:
    return isinstance(value, str | list | tuple | dict | range | Undefined) and not isinstance(value, Lazy)


def _remainder(value: Any, divisor: Any) -> Any:
    if not isinstance(defined(value), int | float) or not isinstance(divisor, int | float):
        raise TemplateError(f"a division does not work on {kind(value)} and {kind(divisor)}")
    return value % divisor


def _odd(_: Budget, value: Any) -> bool:
    return bool(_remainder(value, 2) == 1)


def _even(_: Budget, value: Any) -> bool:
    return bool(_remainder(value, 2) == 0)


def _divisible(_: Budget, value: Any, num: Any) -> bool:
    return bool(_remainder(value, num) == 0)


def _same(_: Budget, value: Any, other: Any) -> bool:
    return value is other


def _lower(budget: Budget, value: Any) -> bool:
    return isinstance(value, str) and _charged(budget, value).islower()


def _upper(budget: Budget, value: Any) -> bool:
    return isinstance(value, str) and _charged(budget, value).isupper()


def _charged(budget: Budget, text: str) -> str:
    budget.read(8 * len(text))
    return text


def truth(_: Budget, value: Any) -> bool:
    """What `select` asks where it is given no test."""
    return is_true(value)


# fmt: off
_COMPARED = {  # more names for comparisons
    "eq": "eq", "equalto": "eq", "==": "eq", "ne": "ne", "!=": "ne", "in": "in",
    "lt": "lt", "lessthan": "lt", "<": "lt", "le": "lteq", "<=": "lteq",
    "gt": "gt", "greaterthan": "gt", ">": "gt", "ge": "gteq", ">=": "gteq",
}
# fmt: on
TESTS: Mapping[str, Callable[..., bool]] = {
    **{name: COMPARISONS[comparison] for name, comparison in _COMPARED.items()},
    "boolean": _of_type(bool),
    "callable": _of_type(Function),
    "defined": _defined,
    "divisibleby": _divisible,
    "even": _even,
    "false": _is(False),
    "float": _of_type(float),
    "integer": _integer,
    "iterable": _of_type(str, list, tuple, dict, range, Undefined),
    "lower": _lower,
    "mapping": _of_type(dict),
    "none": _is(None),
    "number": _of_type(int, float),
    "odd": _odd,
    "sameas": _same,
    "sequence": _sequence,
    "string": _of_type(str),
    "true": _is(True),
    "undefined": _undefined,
    "upper": _upper,
}
"""Each takes the budget and the value, then what templates give it."""
