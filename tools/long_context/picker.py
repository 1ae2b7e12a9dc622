"""Choices that are the same everywhere: of `random.Random`, only `random()` has a sequence that never changes."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Picker:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def number(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def one(self, things: Sequence[T]) -> T:
        return things[self.number(0, len(things) - 1)]

    def some(self, things: Sequence[T], count: int) -> list[T]:
        """`count` different ones, in the order of `things`."""
        left = list(range(len(things)))
        chosen = [left.pop(self.number(0, len(left) - 1)) for _ in range(count)]
        return [things[i] for i in sorted(chosen)]

    def chance(self, of_hundred: int) -> bool:
        return self.number(1, 100) <= of_hundred
