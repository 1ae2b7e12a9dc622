"""Turns measured figures into tables."""

from typing import Any

from comparisons import comparison
from draws import draws
from serving import serving
from tables import spread, table


def forwards(profile: dict[str, Any]) -> str:
    """T(n), v(n), T(n) against the floor and n / v(n), for each context."""
    parts = []
    for context, figures in profile["contexts"].items():
        rows = [
            [
                n,
                f"{t:.2f}",
                f"{figures['v'][n]:.2f}",
                f"{figures['over_floor'][n]:.2f}",
                f"{int(n) / figures['v'][n]:.2f}",
            ]
            for n, t in figures["t_ms"].items()
            if int(n) in (1, 2, 3, 4, 6, 8, 12, 16)
        ]
        parts.append(
            f"Behind {context} cached tokens:\n\n" + table(["n", "T(n) ms", "v(n)", "T(n) / floor", "n / v(n)"], rows)
        )
    return "\n\n".join(parts)


def around(overhead: dict[str, Any], profile: dict[str, Any]) -> str:
    host = overhead["host_ms"]
    rows = [
        ["Python of a decode step, no drafts, ms", spread(host["off"])],
        ["Python of a decode step, n-gram drafts, ms", spread(host["ngram"])],
        ["first character of `paceline generate` from cold, s", spread(overhead["first_character_seconds"])],
        ["peak memory of a short answer, MB", f"{overhead['peak_bytes'] / 1e6:.0f}"],
        ["weights, MB", f"{profile['weight_bytes'] / 1e6:.1f}"],
    ]
    return table(["", "median (quartiles)"], rows)


def parts_of_steps(roofline: dict[str, Any]) -> str:
    """Each part's time in steps of several numbers of rows, with what sets its limit and its share of it."""
    context = min(step["context"] for step in roofline["steps"])
    steps = [step for step in roofline["steps"] if step["context"] == context]
    rows = []
    for index, part in enumerate(steps[0]["parts"]):
        name = f"{part['name']} {part['types']}" if part["types"] else part["name"]
        rows.append([name, *(part_of_step(step["parts"][index]) for step in steps)])
    rows.append(["step", *(f"{step['step_ms']:.2f}, {step['limit_ms'] / step['step_ms']:.0%}" for step in steps)])
    return table(
        ["ms, share of the limit", *("1 row" if step["rows"] == 1 else f"{step['rows']} rows" for step in steps)], rows
    )


def part_of_step(part: dict[str, Any]) -> str:
    """B: bytes set the limit; A: arithmetic does."""
    time = f"{part['ms']:.2f}"
    if part["of_limit"] is None:
        return time
    return f"{time}, {part['of_limit']:.0%} {'B' if part['limit_set_by'] == 'bytes' else 'A'}"


def document(
    models: list[dict[str, Any]],
    together: list[dict[str, Any]],
    sampling: list[dict[str, Any]],
    comparisons: list[dict[str, Any]],
) -> str:
    """docs/figures.md, without its note: a chapter for each model, one each for many requests, drawing tokens and other
    engines."""
    chapters = ((serving, together), (draws, sampling), (comparison, comparisons))
    rest = "\n".join([make(results) for make, results in chapters if results])
    return f"""# Figures

Medians, with quartiles in brackets; ratios are of times in the same round. The machine is a virtual one whose
neighbours come and go: its bandwidth and clock vary by a third from minute to minute. Only the ratios count.

{"".join(map(chapter, models))}{rest}"""


def chapter(figures: dict[str, Any]) -> str:
    where, profile = figures["provenance"], figures["profile"]
    roofline = profile["roofline"]
    machine = f"{where['num_cpus']} processors ({where['cpu']}, {profile['isa']}), {profile['threads']} threads"
    megabytes, bandwidth = profile["weight_bytes"] / 1e6, profile["bandwidth_gb_per_s"]
    return f"""## {figures["title"]}

On {machine}, {where["date"]}, Paceline {where["paceline"]}. Made by

    {where["command"]}

### Forwards of n rows

`paceline profile`. The floor is the time of reading the weights of one step ({megabytes:.1f} MB) at the best bandwidth
seen in the same run, {bandwidth:.1f} GB/s: {profile["floor_ms"]:.2f} ms.

{forwards(profile)}

### Where a step's time goes

`paceline profile --roofline`: behind the shortest context, each part's time and its limit's share of it. B: the limit
is the part's bytes at {bandwidth:.1f} GB/s. A: its multiply-adds, at {roofline["code_rate_g_per_s"]:.0f} · 10⁹ products
of codes a second (8-bit codes take two each) or {roofline["float_rate_g_per_s"]:.0f} · 10⁹ in float32.

{parts_of_steps(roofline)}

### Around the forward

`benchmarks/overhead.py`.

{around(figures["overhead"], profile)}

"""
