"""What to use, from what was measured: a mode for each task class, why, and when to measure again."""

from collections.abc import Sequence

from paceline.bench.base import ALL, Mode
from paceline.bench.result import Advice, Run
from paceline.bench.statistics import MIN_BLOCKS
from paceline.controller import OFF

_PARTS = ("target", "proposer", "caches")  # of memory; the peak of the process is common to all modes
_MIB = 2**20


def advise(runs: Sequence[Run], modes: Sequence[Mode]) -> list[Advice]:
    """For each task class, and for "all" of them, the mode that decodes fastest at the lowest load that was measured,
    of those that are faster than "off" beyond doubt; "off" where none is.

    "Beyond doubt" is the verdict "faster": the whole interval lies above 1. Of equally fast modes the one that drafts
    fewer tokens is taken. Closed loops decide, where there are any.
    """
    draft_lengths = {mode.name: mode.num_speculative_tokens for mode in modes}
    return [
        _advise_class(task_class, levels, draft_lengths)
        for task_class in dict.fromkeys(run.task_class for run in runs)
        if (levels := _levels([run for run in runs if run.task_class == task_class]))
    ]


def when_to_measure_again(runs: Sequence[Run]) -> list[str]:
    """Sentences: what would make the advice stale, and what was not measured well enough to give it."""
    sentences = [
        "Measure again when the model file, the build of paceline, the machine or its number of threads changes: each "
        "of them changes T(n) and v(n).",
        "Measure again when the mix of task classes changes: acceptance differs by class, and the advice for all "
        "classes is of the mix that was measured.",
    ]
    levels = _levels([run for run in runs if run.task_class == ALL])
    if levels:
        highest = levels[-1][0]
        above = (
            f"{highest.concurrency} answers at a time" if highest.concurrency else f"{highest.request_rate:g} a second"
        )
        sentences.append(f"Measure again before serving more than {above}: nothing above was measured.")
    undecided = [
        f"{run.task_class} with {run.mode} at {run.load_label} ({_blocks(run)})"
        for run in runs
        if run.verdict == "undecided" and run.task_class != ALL
    ]
    if undecided:
        sentences.append(f"Measure more blocks of what is undecided: {', '.join(undecided)}.")
    return sentences


def _levels(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs of each load, from the lowest load on: of closed loops, or of open ones where none is closed."""
    known = [run for run in runs if run.concurrency is not None] or runs
    return [[run for run in known if _height(run) == height] for height in sorted({_height(run) for run in known})]


def _height(run: Run) -> float:
    return run.concurrency if run.concurrency is not None else run.request_rate or 0.0


def _advise_class(task_class: str, levels: Sequence[Sequence[Run]], draft_lengths: dict[str, int]) -> Advice:
    lowest = levels[0]
    paying = [run for run in lowest if _pays(run)]
    if not paying:
        return Advice(task_class, OFF, 0, None, _why_off(lowest))
    best = max(paying, key=lambda run: (run.speedup or 0.0, -draft_lengths.get(run.mode, 0)))
    later = [run for level in levels[1:] for run in level if run.mode == best.mode]
    stop = next((i for i, run in enumerate(later) if not _pays(run)), len(later))
    last = later[stop - 1] if stop else best
    ends = later[stop] if stop < len(later) else None
    plain = next((run for run in lowest if run.mode == OFF), None)
    reason = "; ".join([_gain(best), *_end(best, last, ends), *_memory(best, plain), *_identity(best)])
    limits = (last.concurrency, last.request_rate) if ends else (None, None)
    return Advice(task_class, best.mode, draft_lengths.get(best.mode, 0), limits[0], reason, limits[1])


def _pays(run: Run) -> bool:
    return run.verdict == "faster"


def _gain(run: Run) -> str:
    return f"decodes {_interval(run)} times as fast as off at {run.load_label}"


def _interval(run: Run) -> str:
    if run.speedup_ci is None:
        return f"{run.speedup:.2f}"
    low, high = run.speedup_ci
    return f"{run.speedup:.2f} ({low:.2f} to {high:.2f})"


def _end(best: Run, last: Run, ends: Run | None) -> list[str]:
    """From which load on it stops paying."""
    if ends is not None:
        how = "is slower" if ends.verdict == "slower" else "is not sure to pay"
        gain = f", {_interval(ends)}" if ends.speedup is not None else ""
        return [f"from {ends.load_label} on it {how}{gain}"]
    return [f"it pays up to {last.load_label} too, the most that was measured"] if last is not best else []


def _memory(run: Run, plain: Run | None) -> list[str]:
    """What it costs in memory, as far as the target tells it."""
    if plain is None or not any(part in run.memory_bytes for part in _PARTS):
        return []
    taken, without = (sum(each.memory_bytes.get(part, 0) for part in _PARTS) for each in (run, plain))
    if taken <= without:
        return ["it takes no more memory than off"]
    return [f"it takes {(taken - without) / _MIB:,.1f} MiB more memory than off"]


def _blocks(run: Run) -> str:
    return "1 block" if run.num_blocks == 1 else f"{run.num_blocks} blocks"


def _identity(run: Run) -> list[str]:
    if run.identical_fraction is None or run.identical_fraction == 1:
        return []
    return [f"of its answers {run.identical_fraction:.1%} are those of off"]


def _why_off(level: Sequence[Run]) -> str:
    others = [run for run in level if run.mode != OFF]
    if not others:
        return "no other mode was measured"
    known = [run for run in others if run.speedup is not None]
    if not known:
        return "there are no blocks in which off and another mode both answered everything"
    best = max(known, key=lambda run: run.speedup or 0.0)
    if best.verdict == "slower":
        return f"every other mode is slower at {best.load_label}, the best of them, {best.mode}, at {_interval(best)}"
    few = (
        f", and {_blocks(best)} {'is' if best.num_blocks == 1 else 'are'} too few to tell"
        if best.num_blocks < MIN_BLOCKS
        else ""
    )
    return f"no mode is faster beyond doubt at {best.load_label}: the best, {best.mode}, gave {_interval(best)}{few}"
