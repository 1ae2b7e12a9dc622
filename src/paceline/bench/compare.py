"""What changed between two results, and whether it is more than noise."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.bench.base import ALL
from paceline.bench.figures.speedup import RATIO, Pairs, by_key, decode_row, pair_blocks
from paceline.bench.plain_values import flat
from paceline.bench.result import BlockSums, Result, Run
from paceline.bench.statistics import Estimate, Sample, estimate_ratio
from paceline.controller import OFF
from paceline.errors import UsageError

BETTER, WORSE, NOISE = "better", "worse", "noise"
_DECISIVE = ("rule", "prefix_caching", "burstiness")  # settings that figures depend on beside the fingerprint
_MACHINE = "machine"  # the part of a fingerprint that tells the machine

_Place = tuple[str, str, int | None, float | None]  # task class, mode, concurrency, request rate
_Key = tuple[str, int]  # task class and index of a block


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one class, mode and load, in both results.

    `ratio`: `second` ÷ `first`, over the blocks that count in the results themselves; `interval` its 95 % interval,
    None with fewer than five blocks in either. `verdict`: "better" or "worse" where the interval leaves out 1, else
    "noise". A share of identical answers has no interval, because nothing about it is chance: any change of it counts.
    """

    task_class: str
    mode: str
    concurrency: int | None
    request_rate: float | None
    figure: str
    first: float | None
    second: float | None
    ratio: float | None
    interval: tuple[float, float] | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Change:
    """A value of the fingerprint, the settings or the provenance. `first`, `second`: as JSON, "none" where missing."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`rows` in the order of the second result. `only_first`, `only_second`: "class, mode, load" that the other lacks.
    `fingerprint`: what differs in it, empty unless the comparison was forced. `changes`: what else was different.
    """

    rows: Sequence[Row]
    only_first: Sequence[str]
    only_second: Sequence[str]
    fingerprint: Sequence[Change]
    changes: Sequence[Change]


def compare(first: Result, second: Result, *, is_forced: bool = False) -> Comparison:
    """Raises UsageError for results whose fingerprints or decisive settings differ, unless `is_forced`.

    Speedups are compared always: each is a ratio within one result. Tokens per second are compared only where both
    fingerprints name the same machine.
    """
    differing = [
        *_changes(first.fingerprint, second.fingerprint),
        *_changes({"settings": _decisive(first)}, {"settings": _decisive(second)}),
    ]
    if differing and not is_forced:
        told = "; ".join(f"{change.name} is {change.first} and {change.second}" for change in differing)
        raise UsageError(f"the results are of different things: {told}; compare them all the same with --force")
    sides = (_Side(first), _Side(second))
    is_one_machine = first.fingerprint.get(_MACHINE) == second.fingerprint.get(_MACHINE)
    rows = [
        row
        for place, run in sides[1].runs.items()
        if place in sides[0].runs
        for row in _rows(sides[0], sides[1], place, run, is_one_machine)
    ]
    return Comparison(
        rows,
        [_words(run) for place, run in sides[0].runs.items() if place not in sides[1].runs],
        [_words(run) for place, run in sides[1].runs.items() if place not in sides[0].runs],
        differing,
        _changes(
            {"settings": _others(first), "provenance": first.provenance},
            {"settings": _others(second), "provenance": second.provenance},
        ),
    )


def _decisive(result: Result) -> dict[str, Any]:
    return {name: result.settings.get(name) for name in _DECISIVE}


def _others(result: Result) -> dict[str, Any]:
    return {name: value for name, value in result.settings.items() if name not in _DECISIVE}


class _Side:
    """One result, by place."""

    def __init__(self, result: Result) -> None:
        self._blocks = result.blocks
        self.runs: dict[_Place, Run] = {
            (run.task_class, run.mode, run.concurrency, run.request_rate): run for run in result.runs
        }

    def blocks(self, place: _Place) -> list[BlockSums]:
        task_class, mode, *load = place
        return [
            block
            for block in self._blocks
            if task_class in (ALL, block.task_class)
            and block.mode == mode
            and [block.concurrency, block.request_rate] == load
        ]

    def pairs(self, place: _Place) -> Pairs:
        task_class, _, concurrency, request_rate = place
        return pair_blocks(self.blocks(place), self.blocks((task_class, OFF, concurrency, request_rate)))


def _rows(first: _Side, second: _Side, place: _Place, run: Run, is_one_machine: bool) -> Iterable[Row]:
    before = first.runs[place]
    if run.mode != OFF:
        change = _speedup_change(first.pairs(place), second.pairs(place))
        yield _row(place, "speedup", before.speedup, run.speedup, change)
    if is_one_machine:
        change = _rate_change(first.blocks(place), second.blocks(place))
        rates = (before.output_tokens_per_second, run.output_tokens_per_second)
        yield _row(place, "output_tokens_per_second", *rates, change)
    shares = (before.identical_fraction, run.identical_fraction)
    if None not in shares and shares[0] != shares[1]:
        verdict = BETTER if (shares[1] or 0) > (shares[0] or 0) else WORSE
        yield Row(*place, "identical_fraction", *shares, ratio=None, interval=None, verdict=verdict)


def _row(place: _Place, figure: str, first: float | None, second: float | None, change: Estimate | None) -> Row:
    verdict = {1: BETTER, -1: WORSE, 0: NOISE}[change.side if change else 0]
    value, interval = (change.value, change.interval) if change else (None, None)
    return Row(*place, figure, first, second, value, interval, verdict)


def _speedup_change(first: Pairs, second: Pairs) -> Estimate | None:
    before, after = (
        {(mode.task_class, mode.index): decode_row(mode, off) for mode, off in side} for side in (first, second)
    )
    return _change(before, after, RATIO)


def _rate_change(first: Iterable[BlockSums], second: Iterable[BlockSums]) -> Estimate | None:
    before, after = (
        {key: (sums.num_tokens, sums.seconds) for key, sums in by_key(side).items()} for side in (first, second)
    )
    return _change(before, after, (1, -1))


def _change(
    first: Mapping[_Key, Sequence[float]], second: Mapping[_Key, Sequence[float]], exponents: tuple[int, ...]
) -> Estimate | None:
    """Of the ratio that `exponents` make of a block's sums. Where both results have the same blocks, as two runs of one
    workload do, a block is drawn from both together, and what its items are like widens nothing."""
    inverse = tuple(-exponent for exponent in exponents)
    if first.keys() == second.keys():
        rows = [(*second[key], *first[key]) for key in second]
        return estimate_ratio(Sample.of(rows, (*exponents, *inverse)))
    return estimate_ratio(Sample.of([*second.values()], exponents), Sample.of([*first.values()], inverse))


def _words(run: Run) -> str:
    return f"{run.task_class}, {run.mode}, {run.load_label}"


def _changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Change]:
    before, after = (
        {name: json.dumps(value, ensure_ascii=False) for name, value in flat(values)} for values in (first, second)
    )
    return [
        Change(name, before.get(name, "none"), after.get(name, "none"))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]
