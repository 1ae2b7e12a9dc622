"""Tables of `benchmarks/batching.py`: what serving several requests at once gives and costs."""

from statistics import median
from typing import Any

from tables import spread, table


def serving(results: list[dict[str, Any]]) -> str:
    """The chapter of docs/figures.md, the same in benchmarks/README.md."""
    models = sorted((each for each in results if "speedup" in each), key=lambda figures: figures["weight_bytes"])
    streams = [each for each in results if "share" in each]
    return "\n\n".join(["## Many requests at once", *map(_section, models), *map(_streams, streams)]) + "\n"


def _section(figures: dict[str, Any]) -> str:
    where = figures["provenance"]
    rows = [
        [
            n,
            spread(figures["speedup"][n]),
            spread(figures["against_ceiling"][n]),
            spread(figures["host_ms"][n]),
        ]
        for n in figures["speedup"]
    ]
    gains = [cold / hit for cold, hit in figures["prefix_seconds"]]
    sooner = [hit * 1e3 for _, hit in figures["prefix_seconds"]]
    return f"""### {figures["title"]}, together

On {where["num_cpus"]} processors ({where["cpu"]}), {where["date"]}, Paceline {where["paceline"]}. Made by

    {where["command"]}

Plain decoding of n requests at once, against one request's tokens per second in the same round, and against n / v(n) of
the same round:

{table(["n", "x one's tokens/s", "share of n / v(n)", "Python of a step, ms"], rows)}

Behind {figures["prefix_tokens"]:,} tokens that are in the cache the first token comes {spread(gains)} times sooner than
where they are not, after {median(sooner):.0f} ms.{_growth(figures)}"""


def _streams(figures: dict[str, Any]) -> str:
    where, times = figures["provenance"], figures["ms"]
    names = {
        "step": "a step of the engine's thread",
        "forward": "its forward",
        "python": "its Python around the forward",
        "handing_over": "handing the step's tokens over",
        "loop_cpu": "making text and feeding the readers, in the event loop's thread",
    }
    rows = [[what, spread(times[name])] for name, what in names.items()]
    return f"""### {figures["num_streams"]} streams of the default model

On {where["num_cpus"]} processors ({where["cpu"]}), {where["date"]}, Paceline {where["paceline"]}. Made by

    {where["command"]}

{table(["", "ms"], rows)}

Handing over and making text together take {spread(figures["share"], 100)} % of a step."""


def _growth(figures: dict[str, Any]) -> str:
    growth = figures.get("growth")
    if growth is None:
        return ""
    more = (growth["resident_after"] - growth["resident_before"]) / 1e6
    before, entries = growth["table_entries_before"], growth["table_entries_after"] - growth["table_entries_before"]
    return (
        f" {growth['num_requests']:,} short requests, once the cache had been filled, changed the resident memory by "
        f"{more:+.1f} MB and the engine's tables by {entries:+} entries of {before:,}, and left "
        f"{growth['num_free_pages']:,} of {growth['num_pages']:,} pages free."
    )
