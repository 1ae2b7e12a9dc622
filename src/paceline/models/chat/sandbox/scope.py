"""Where names get their values in a chat template, and what `loop` is in one."""

from collections.abc import Callable
from typing import Any, Self

from paceline.models.chat.sandbox.budget import Budget
from paceline.models.chat.sandbox.values import Function, Record, TemplateError, Undefined, are_equal


class Scope:
    """Names set here, else those around. Bodies of loops, macros and the like have one of their own."""

    __slots__ = ("around", "values")

    def __init__(self, around: Self | None, values: dict[str, Any] | None = None) -> None:
        self.around = around
        self.values = values if values is not None else {}

    def find(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.around
        return Undefined(name)


class Loop(Record):
    """`loop` inside of a `for`. `recurse` runs its body over other items, in recursive loops."""

    def __init__(self, items: Any, depth: int, budget: Budget, recurse: Callable[[Any], str] | None) -> None:
        self.items = items
        self.index = 0
        self.depth = depth
        self.recurse = recurse
        self._budget = budget
        self._last: Any = None

    def member(self, name: str) -> Any:
        index, length = self.index, len(self.items)
        match name:
            case "index":
                return index + 1
            case "index0":
                return index
            case "revindex":
                return length - index
            case "revindex0":
                return length - index - 1
            case "first":
                return index == 0
            case "last":
                return index == length - 1
            case "length":
                return length
            case "previtem":
                return self.items[index - 1] if index else Undefined("loop.previtem")
            case "nextitem":
                return self.items[index + 1] if index + 1 < length else Undefined("loop.nextitem")
            case "depth":
                return self.depth + 1
            case "depth0":
                return self.depth
            case "cycle":
                return Function("cycle", self._cycle)
            case "changed":
                return Function("changed", self._changed)
        return Undefined(f"loop.{name}")

    def _cycle(self, *values: Any) -> Any:
        if not values:
            raise TemplateError("'loop.cycle' needs at least one value")
        return values[self.index % len(values)]

    def _changed(self, *values: Any) -> bool:
        is_changed = self._last is None or not are_equal(self._last, values, self._budget)
        self._last = values
        return is_changed
