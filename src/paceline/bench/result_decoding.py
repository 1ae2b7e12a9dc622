"""JSON values into the dataclasses of a result, checked field by field against their annotations.

Only the kinds of annotation that results have are known here: plain values, unions with None, tuples, sequences,
mappings from strings, dataclasses of these, and Any.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints


class FieldError(Exception):
    """`place`: the field, from the top. `expected`: in words."""

    def __init__(self, place: str, found: object, expected: str) -> None:
        super().__init__(f"{place} is {found!r:.60}; expected {expected}")


_WORDS = {str: "a text", int: "an integer", float: "a number", bool: "true or false", NoneType: "null"}


def decode(kind: Any, value: object, place: str) -> Any:
    """`value` as `kind`. Raises FieldError for the first field that is not what its annotation says."""
    if kind is Any:
        return value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return _decode_union(arguments, value, place)
    if origin is tuple:
        return _decode_tuple(arguments, value, place)
    if origin is Sequence:
        return _decode_tuple((arguments[0], ...), value, place)
    if origin is Mapping:
        return {name: decode(arguments[1], each, f"{place}.{name}") for name, each in _object(value, place).items()}
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, value, place)
    return _decode_plain(kind, value, place)


def _decode_plain(kind: type, value: object, place: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:  # an integer of hundreds of digits
            raise FieldError(place, value, "a number of at most 1e308") from None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise FieldError(place, value, _WORDS[kind])
    return value


def _decode_union(kinds: tuple[Any, ...], value: object, place: str) -> Any:
    """What is not null is of the last kind that is left, or of one of several plain kinds."""
    if value is None and NoneType in kinds:
        return None
    others = [kind for kind in kinds if kind is not NoneType]
    if len(others) == 1:
        return decode(others[0], value, place)
    for kind in others:
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
    raise FieldError(place, value, " or ".join(_WORDS[kind] for kind in kinds))


def _decode_tuple(kinds: tuple[Any, ...], value: object, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise FieldError(place, value, "a list")
    if kinds[-1] is ...:
        return tuple([decode(kinds[0], each, f"{place}[{i}]") for i, each in enumerate(value)])
    if len(value) != len(kinds):
        raise FieldError(place, value, f"a list of {len(kinds)}")
    return tuple([decode(kind, each, f"{place}[{i}]") for i, (kind, each) in enumerate(zip(kinds, value, strict=True))])


def _decode_dataclass(kind: Any, value: object, place: str) -> Any:
    found = _object(value, place)
    fields = _fields(kind)
    prefix = f"{place}." if place else ""
    for name in found:
        if name not in fields:
            raise FieldError(f"{prefix}{name}", found[name], f"only {', '.join(fields)}")
    missing = [name for name in fields if name not in found]
    if missing:
        raise FieldError(place or "the result", found, f"a field {missing[0]!r} in it")
    return kind(**{name: decode(hint, found[name], f"{prefix}{name}") for name, hint in fields.items()})


@cache
def _fields(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _object(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FieldError(place or "the result", value, "an object")
    return value
