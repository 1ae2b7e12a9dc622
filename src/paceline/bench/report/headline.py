"""The one sentence that a result comes down to."""

from dataclasses import dataclass

from paceline.bench.base import ALL
from paceline.bench.report.index import RunIndex
from paceline.bench.report.texts import interval, number, percent, ratio, short_name
from paceline.bench.result import Result, Run
from paceline.controller import OFF

_AUTO = "auto"  # the mode that chooses by itself, and so the one that a user gets


@dataclass(frozen=True, slots=True)
class Headline:
    """`verdict`: "faster", "slower", "undecided", or "off" where nothing was set against plain decoding. `run`: what
    it is about, None without runs; `off`: the run of plain decoding beside it. `is_identical`: None where no answers
    were compared."""

    verdict: str
    title: str
    sentence: str
    run: Run | None = None
    off: Run | None = None

    @property
    def is_identical(self) -> bool | None:
        share = None if self.run is None else self.run.identical_fraction
        return None if share is None else share == 1


def headline(result: Result) -> Headline:
    """Of the least load, over all classes: of the mode "auto" if it was run, else of the one with the most speedup."""
    index = RunIndex(result.runs)
    if not index.loads:
        return Headline("off", "Nothing was measured", "The result holds no runs")
    load = index.loads[0]
    found = [index.get(index.overall, mode, load) for mode in index.speculating]
    measured = [run for run in found if run is not None and run.speedup is not None]
    off = index.get(index.overall, OFF, load)
    if not measured:
        return _without_speedup(off, load)
    best = max(measured, key=lambda run: (run.mode == _AUTO, run.speedup))
    verdict = best.verdict or "undecided"
    return Headline(verdict, _title(verdict), _sentence(best, len(measured)), best, off)


def _without_speedup(off: Run | None, load: str) -> Headline:
    if off is None:
        return Headline("off", "No speedup was measured", "No mode was run beside plain decoding")
    rate = off.output_tokens_per_second
    told = "No other mode to set against it"
    if rate is not None:
        told = f"{number(rate)} tokens a second at {load}, no other mode to set against it"
    return Headline("off", "Plain decoding only", told, off, off)


def _title(verdict: str) -> str:
    titles = {"faster": "Faster than plain decoding", "slower": "Slower than plain decoding"}
    return titles.get(verdict, "Undecided: the interval does not tell it from plain decoding")


def _sentence(run: Run, num_modes: int) -> str:
    classes = "over all classes" if run.task_class == ALL else f"in {short_name(run.task_class)}"
    choice = f", the best of {num_modes} modes" if num_modes > 1 and run.mode != _AUTO else ""
    parts = [f"Speedup {interval(run.speedup, run.speedup_ci)} {classes} at {run.load_label}"]
    parts[0] += f" with {short_name(run.mode)}{choice}"
    if run.ceiling is not None:
        parts.append(f"ceiling {ratio(run.ceiling)}")
    same = run.identical_fraction
    parts.append("text not compared" if same is None else f"identical text {percent(same)}")
    return ", ".join(parts)
