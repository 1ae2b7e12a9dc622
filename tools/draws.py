"""Tables of `benchmarks/sampling.py`: what drawing tokens costs."""

from typing import Any

from tables import spread, table


def draws(results: list[dict[str, Any]]) -> str:
    """The chapter of docs/figures.md."""
    return "\n\n".join(["## Drawing tokens", *map(_section, results)]) + "\n"


def _section(figures: dict[str, Any]) -> str:
    where = figures["provenance"]
    machine = f"{where['num_cpus']} processors ({where['cpu']}, {figures['isa']})"
    rows = [[name, spread(values)] for name, values in figures["milliseconds"].items()]
    return f"""On {machine}, {where["date"]}, Paceline {where["paceline"]}. Made by

    {where["command"]}

{table(["rows x vocabulary, shape of the logits, parameters", "ms"], rows)}"""
