from itertools import combinations, product

import pytest
from covering import covering_array, pairs, pairs_of

SIZES = [(2,), (2, 2), (4, 2, 2), (3, 3, 3, 3), (4, *[2] * 12), (5, 4, 3, 2, 1)]


def named(sizes: tuple[int, ...]) -> dict[str, list[int]]:
    return {f"p{i}": list(range(size)) for i, size in enumerate(sizes)}


@pytest.mark.parametrize("sizes", [sizes for sizes in SIZES if len(sizes) > 1])
def test_every_pair_comes_up(sizes: tuple[int, ...]) -> None:
    rows = covering_array(named(sizes))
    for i, j in combinations(range(len(sizes)), 2):
        found = {(row[f"p{i}"], row[f"p{j}"]) for row in rows}
        assert found == set(product(range(sizes[i]), range(sizes[j])))
    assert all(row.keys() == named(sizes).keys() for row in rows)
    assert covering_array(named(sizes)) == rows


def test_few_rows_are_enough() -> None:
    """No fewer than the two largest parameters have pairs, and not many more."""
    assert len(covering_array(named((4, *[2] * 12)))) <= 14
    assert 9 <= len(covering_array(named((3, 3, 3, 3)))) <= 13


def test_what_is_covered_is_what_rows_hold() -> None:
    values = named((3, 2, 2))
    rows = covering_array(values)
    assert {pair for row in rows for pair in pairs_of(row)} == set(pairs(values))
    assert {pair for row in rows[1:] for pair in pairs_of(row)} < set(pairs(values)), "the first row covers nothing new"
