"""Covering arrays: few combinations of many parameters, in which every two values of two parameters come together."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
Cell = tuple[str, T]  # a parameter and its value


def covering_array(values: Mapping[str, Sequence[T]]) -> list[dict[str, T]]:
    """Combinations in which every pair of values of two parameters comes up. Greedy, and the same each time.

    A row begins with the first pair that is missing, and then takes for each parameter in turn the value that brings
    the most missing pairs with those that it has.
    """
    missing = dict.fromkeys(pairs(values))
    rows = list[dict[str, T]]()
    while missing:
        row = dict(next(iter(missing)))
        for name in values:
            if name not in row:
                row[name] = max(
                    values[name], key=lambda value: sum(_pair(name, value, c) in missing for c in row.items())
                )
        rows.append({name: row[name] for name in values})
        for pair in pairs_of(rows[-1]):
            missing.pop(pair, None)
    return rows


def pairs(values: Mapping[str, Sequence[T]]) -> Iterator[tuple[Cell[T], Cell[T]]]:
    """All that a covering array has to cover; the parameter of lower name first."""
    for one, other in combinations(sorted(values), 2):
        for a, b in product(values[one], values[other]):
            yield (one, a), (other, b)


def pairs_of(row: Mapping[str, T]) -> Iterator[tuple[Cell[T], Cell[T]]]:
    """The pairs that one combination covers."""
    return combinations(sorted(row.items(), key=lambda cell: cell[0]), 2)


def _pair(name: str, value: T, cell: Cell[T]) -> tuple[Cell[T], Cell[T]]:
    return ((name, value), cell) if name < cell[0] else (cell, (name, value))
