"""Turns the results of benchmarks/compare.py into tables and sentences: Paceline beside other engines."""

import statistics
from typing import Any

from tables import spread, table

SHOWN_ROWS = (2, 4, 8, 16)


def ratios(values: list[float], base: list[float]) -> list[float]:
    """Round by round."""
    return [value / own for value, own in zip(values, base, strict=True)]


def task_name(task: str) -> str:
    return "prefill" if task == "prefill" else "decoding" if task == "decode" else task.removeprefix("rows ")


def runs(counts: list[int], all_counts: list[int]) -> str:
    """`2–5, 8`: counts that follow each other among those measured are one run."""
    parts: list[list[int]] = []
    for n in counts:
        if parts and all_counts.index(n) == all_counts.index(parts[-1][-1]) + 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    return ", ".join(f"{part[0]}–{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def tasks_where(holds: dict[str, tuple[float, float, float]], all_tasks: list[str]) -> str:
    """The tasks of one engine with their median ratios, rows together."""
    parts = [f"{task_name(task)} ({holds[task][1]:.2f})" for task in ("decode", "prefill") if task in holds]
    counts = [int(task.removeprefix("rows ")) for task in holds if task.startswith("rows ")]
    if counts:
        medians = sorted(holds[f"rows {n}"][1] for n in counts)
        between = f"{medians[0]:.2f}" if len(counts) == 1 else f"{medians[0]:.2f} to {medians[-1]:.2f}"
        all_counts = [int(task.removeprefix("rows ")) for task in all_tasks if task.startswith("rows ")]
        parts.append(f"forwards of n = {runs(counts, all_counts)} ({between})")
    return ", ".join(parts)


def quartiles_by_engine(result: dict[str, Any]) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Of each other engine's time over Paceline's in the same round, by engine and task."""
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    for task, by_engine in result["seconds"].items():
        for engine, values in by_engine.items():
            if engine != "paceline":
                low, middle, high = statistics.quantiles(ratios(values, by_engine["paceline"]), n=4)
                found.setdefault(engine, {})[task] = (low, middle, high)
    return found


def verdict(results: list[dict[str, Any]]) -> str:
    """Where another engine is faster, and where the rounds do not decide it."""
    faster, undecided = [], []
    for result in results:
        all_tasks = list(result["seconds"])
        for engine, tasks in quartiles_by_engine(result).items():
            where = {task: q for task, q in tasks.items() if q[2] < 1}
            if where:
                faster.append(f"- {engine} on {result['title']}: {tasks_where(where, all_tasks)}")
            where = {task: q for task, q in tasks.items() if q[0] < 1 <= q[2]}
            if where:
                undecided.append(f"- {engine} on {result['title']}: {tasks_where(where, all_tasks)}")
    parts = []
    if faster:
        head = "In three rounds of four or more, another engine was faster (its time divided by Paceline's, median):"
        parts.append(head + "\n\n" + "\n".join(faster))
    else:
        parts.append("In nothing measured here was another engine faster than Paceline in three rounds of four.")
    if undecided:
        parts.append("Undecided, with quartiles on both sides of 1:\n\n" + "\n".join(undecided))
    return "\n\n".join(parts)


def times(results: list[dict[str, Any]]) -> str:
    """One row for each file and engine."""
    rows = []
    for result in results:
        seconds = result["seconds"]
        for engine in result["engines"]:
            one = seconds["rows 1"][engine]
            growth = [
                f"{statistics.median(ratios(seconds[f'rows {n}'][engine], one)):.2f}" if f"rows {n}" in seconds else ""
                for n in SHOWN_ROWS
            ]
            measured = [seconds["decode"][engine], one, seconds["prefill"][engine]]
            decode, first, prefill = (spread(values, 1e3) for values in measured)
            rows.append([result["title"], engine, decode, first, *growth, prefill])
    head = ["file", "engine", "decoding, ms a token", "T(1) ms", *(f"v({n})" for n in SHOWN_ROWS), "prefill ms"]
    return table(head, rows)


def paired(results: list[dict[str, Any]]) -> str:
    """One row for each file and other engine."""
    rows = []
    shown = ["decode", "rows 1", *(f"rows {n}" for n in SHOWN_ROWS), "prefill"]
    for result in results:
        seconds = result["seconds"]
        for engine in result["engines"]:
            if engine != "paceline":
                cells = [
                    spread(ratios(seconds[task][engine], seconds[task]["paceline"])) if task in seconds else ""
                    for task in shown
                ]
                rows.append([result["title"], engine, *cells])
    return table(["file", "engine", "decoding", *(f"T({n})" for n in (1, *SHOWN_ROWS)), "prefill"], rows)


def files(results: list[dict[str, Any]]) -> str:
    """What was measured, on what, and how, a line for each file."""
    lines = []
    for result in results:
        model, where = result["model"], result["provenance"]
        types = ", ".join(f"{name} {share:.0%}" for name, share in model["types"].items() if share >= 0.005)
        rounds = len(result["seconds"]["rows 1"]["paceline"])
        lines.append(
            f"- {result['title']}: {model['bytes'] / 1e6:.0f} MB ({types}), SHA-256 {model['sha256'][:12]}…; "
            f"{where['cpu']}, {result['threads']} threads, {rounds} rounds, {where['date']}; `{where['command']}`"
        )
    return "\n".join(lines)


def versions(results: list[dict[str, Any]]) -> str:
    engines = [facts for result in results for facts in result["engines"].values()]
    return ", ".join(sorted({f"{facts['package']} {facts['version']}" for facts in engines}))


def comparison(results: list[dict[str, Any]]) -> str:
    """The chapter; `results` not empty. All were made with the same context and prompt."""
    [(context, prefill)] = {(result["context"], result["prefill"]) for result in results}
    return f"""## Beside other engines

`benchmarks/compare.py`: the same file and threads for every engine, each in a process of its own, in turns. T(n) is the
time of a forward of n rows with logits for each behind {context} cached tokens, v(n) = T(n) / T(1), and prefill that of
{prefill} tokens in one call. Versions: {versions(results)}. `fa` is flash attention, `repack` weights
repacked when they are loaded (`-rtr`), `thp` weights on huge pages.

{verdict(results)}

{times(results)}

Times divided by Paceline's in the same round, above 1 where Paceline is faster:

{paired(results)}

The files:

{files(results)}
"""
