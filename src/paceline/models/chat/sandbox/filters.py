"""The filters that chat templates may use, each with its cost. Jinja's others are left out: `attr` and `random`, what
works with regular expressions or HTML, and what no template for conversations was seen to need."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from paceline.models.chat.sandbox import text as marked
from paceline.models.chat.sandbox.budget import Budget, TemplateLimitError, check_bits
from paceline.models.chat.sandbox.list_filters import LIST_FILTERS
from paceline.models.chat.sandbox.text_filters import TEXT_FILTERS
from paceline.models.chat.sandbox.values import (
    Lazy,
    TemplateError,
    Undefined,
    defined,
    is_true,
    kind,
)

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


def _safe(_: Budget, value: Any) -> Any:
    return value


def _abs(_: Budget, value: Any) -> Any:
    return abs(_number(value))


FILTERS: Mapping[str, Callable[..., Any]] = {
    **LIST_FILTERS,
    **TEXT_FILTERS,
    "abs": _abs,
    "count": _length,
    "d": _default,
    "default": _default,
    "float": _float,
    "int": _int,
    "length": _length,
    "round": _round,
    "safe": _safe,
}
"""Each takes the budget and the value, then what templates give it. `map`, `select` and their like, which run other
filters and tests, are the interpreter's."""
