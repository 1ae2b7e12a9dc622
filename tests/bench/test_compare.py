"""Two results against each other: what changed, and what is noise."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bench_blocks import NGRAM, OFF_MODE, answer, block, failed, pair

from paceline.bench.base import Block, Load, Mode
from paceline.bench.compare import Change, Comparison, Row, compare
from paceline.bench.figures import block_sums, summarise
from paceline.bench.result import Result
from paceline.errors import UsageError

HERE = {"machine": {"cpu": "x", "threads": 2}, "model": "abc"}


def result(blocks: Sequence[Block], *, modes: Sequence[Mode] = (OFF_MODE, NGRAM), **fields: Any) -> Result:
    return Result(
        **{
            "provenance": {"paceline": "0.1.0"},
            "fingerprint": HERE,
            "settings": {},
            "runs": summarise(blocks, modes=modes),
            "blocks": [block_sums(each) for each in blocks],
            **fields,
        }
    )


def pairs(speedup: float, num: int = 12, *, seed: int = 0, spread: float = 0.02, pace: float = 0.1) -> list[Block]:
    """Blocks of very different speeds, the same in every call; only `spread` is by `seed`."""
    paces = pace * np.exp(np.random.default_rng(99).normal(0, 0.8, num))
    noise = np.exp(np.random.default_rng(seed).normal(0, spread, (num, 2)))
    return [
        each
        for i in range(num)
        for each in pair(i, answer(tpot=paces[i] * noise[i, 0]), answer(tpot=paces[i] / speedup * noise[i, 1]))
    ]


def rows(comparison: Comparison, mode: str = "ngram-4") -> dict[str, Row]:
    return {row.figure: row for row in comparison.rows if row.task_class == "all" and row.mode == mode}


@pytest.mark.parametrize(
    ("before", "after", "verdict"), [(2, 2.02, "noise"), (2, 2.2, "better"), (2, 1.8, "worse"), (1, 3, "better")]
)
def test_speedups(before: float, after: float, verdict: str) -> None:
    first, second = result(pairs(before, seed=3)), result(pairs(after, seed=4))
    row = rows(compare(first, second))["speedup"]
    assert (row.first, row.second) == (first.runs[-1].speedup, second.runs[-1].speedup)
    assert row.ratio == pytest.approx(after / before, rel=0.05)
    assert row.first is not None
    assert row.second == pytest.approx(row.first * (row.ratio or 0))
    assert row.interval is not None
    assert row.interval[0] < row.ratio < row.interval[1]
    assert row.verdict == verdict


def test_what_did_not_change_is_seldom_called_a_change() -> None:
    """One in twenty is what a 95 % interval allows; six of thirty would be almost four standard deviations more."""
    sides = [result(pairs(2, seed=seed)) for seed in range(60)]
    found = [rows(compare(*sides[i : i + 2])) for i in range(0, 60, 2)]
    for figure in ("speedup", "output_tokens_per_second"):
        assert sum(row[figure].verdict != "noise" for row in found) < 6


def test_few_blocks_are_noise() -> None:
    row = rows(compare(result(pairs(1, 4)), result(pairs(3, 4))))["speedup"]
    assert row.ratio == pytest.approx(3, rel=0.05)
    assert (row.interval, row.verdict) == (None, "noise")


def test_every_class_mode_and_load_of_both_has_its_rows() -> None:
    other = [replace(each, task_class="chat", load=Load(request_rate=2)) for each in pairs(2)]
    first = result([*pairs(2), *other])
    found = compare(first, first)
    assert [(row.task_class, row.mode, row.concurrency, row.request_rate, row.figure) for row in found.rows] == [
        (task_class, mode, concurrency, rate, figure)
        for task_class, concurrency, rate in (("code", 1, None), ("chat", None, 2), ("all", 1, None), ("all", None, 2))
        for mode, figure in (
            ("off", "output_tokens_per_second"),
            ("ngram-4", "speedup"),
            ("ngram-4", "output_tokens_per_second"),
        )
    ]
    assert {row.verdict for row in found.rows} == {"noise"}
    assert {row.ratio for row in found.rows} == {1}


def test_what_only_one_has_is_told() -> None:
    late = Mode("late", "ngram", 2)
    blocks = [*pairs(2), *[replace(each, mode="late") for each in pairs(2) if each.mode == "off"]]
    first, second = result(pairs(2)), result(blocks, modes=(OFF_MODE, late))
    found = compare(first, second)
    assert found.only_first == ["code, ngram-4, c=1", "all, ngram-4, c=1"]
    assert found.only_second == ["code, late, c=1", "all, late, c=1"]
    assert {row.mode for row in found.rows} == {"off"}


def test_rates_are_compared_on_one_machine_only() -> None:
    first, second = result(pairs(2, seed=3)), result(pairs(2, seed=4, pace=0.07))
    found = compare(first, second)
    rate = rows(found)["output_tokens_per_second"]
    assert (rate.first, rate.second) == tuple(side.runs[-1].output_tokens_per_second for side in (first, second))
    assert rate.ratio == pytest.approx((rate.second or 0) / (rate.first or 1))
    assert rate.verdict == rows(found, "off")["output_tokens_per_second"].verdict == "better"
    assert rows(found)["speedup"].verdict == "noise"
    elsewhere = replace(second, fingerprint={"machine": {"cpu": "y", "threads": 2}, "model": "abc"})
    found = compare(first, elsewhere, is_forced=True)
    assert [row.figure for row in found.rows] == ["speedup", "speedup"]
    assert found.fingerprint == [Change("machine.cpu", '"x"', '"y"')]


def test_different_fingerprints_are_refused_unless_forced() -> None:
    first = result(pairs(2))
    second = replace(first, fingerprint={"machine": {"cpu": "y", "threads": 2}, "rule": "match"})
    with pytest.raises(UsageError) as caught:
        compare(first, second)
    assert str(caught.value) == (
        'the results are of different things: machine.cpu is "x" and "y"; model is "abc" and none; rule is none and '
        '"match"; compare them all the same with --force'
    )
    assert len(compare(first, second, is_forced=True).fingerprint) == 3
    other = replace(first, fingerprint={**HERE, "model": "def"})
    assert "output_tokens_per_second" in rows(compare(first, other, is_forced=True))


def test_other_changes_are_told() -> None:
    first = result(pairs(2), settings={"modes": ["off"], "rounds": 1})
    second = result(pairs(2), settings={"modes": ["off"], "rounds": 2}, provenance={"paceline": "0.2.0"})
    assert compare(first, second).changes == [
        Change("settings.rounds", "1", "2"),
        Change("provenance.paceline", '"0.1.0"', '"0.2.0"'),
    ]


def test_answers_that_are_no_longer_identical_are_worse() -> None:
    blocks = pairs(2)
    changed = [*blocks[:-1], block("ngram-4", 11, answer(ids=[1, 2, 3]))]
    first, second = result(blocks), result(changed)
    row = rows(compare(first, second))["identical_fraction"]
    assert (row.first, row.second, row.ratio, row.verdict) == (1, pytest.approx(11 / 12), None, "worse")
    assert rows(compare(second, first))["identical_fraction"].verdict == "better"
    assert "identical_fraction" not in rows(compare(second, second))


def test_results_of_different_blocks_are_drawn_apart() -> None:
    """The blocks differ a lot, so two different sets of them say little."""
    first, second = result(pairs(2, 12, seed=1)), result(pairs(2, 13, seed=2, pace=0.07))
    apart = rows(compare(first, second))["output_tokens_per_second"]
    together = rows(compare(first, result(pairs(2, 12, seed=2, pace=0.07))))["output_tokens_per_second"]
    assert (apart.verdict, together.verdict) == ("noise", "better")


def test_blocks_with_errors_count_in_no_speedup() -> None:
    blocks = pairs(2)
    broken = [*blocks[:-1], block("ngram-4", 11, failed())]
    row = rows(compare(result(blocks), result(broken)))["speedup"]
    assert row.interval is not None
    assert row.verdict == "noise"
    nothing = rows(compare(result(blocks), result([*pairs(2, 1)[:1], block("ngram-4", 0, failed())])))["speedup"]
    assert (nothing.second, nothing.ratio, nothing.interval, nothing.verdict) == (None, None, None, "noise")


@pytest.mark.parametrize(("name", "other"), [("rule", "block"), ("prefix_caching", True), ("burstiness", 0.2)])
def test_settings_that_figures_depend_on_are_not_compared_unforced(name: str, other: object) -> None:
    first, second = result(pairs(2), settings={name: None}), result(pairs(2), settings={name: other})
    with pytest.raises(UsageError, match=f"settings.{name} is null and"):
        compare(first, second)
    forced = compare(first, second, is_forced=True)
    assert [change.name for change in forced.fingerprint] == [f"settings.{name}"]
    assert forced.changes == []
