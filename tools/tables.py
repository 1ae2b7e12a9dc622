"""Tables in Markdown, and figures with their spread."""

import statistics

Rows = list[list[str]]


def table(head: list[str], rows: Rows) -> str:
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def spread(values: list[float], scale: float = 1.0) -> str:
    """Median and quartiles."""
    low, middle, high = (value * scale for value in statistics.quantiles(values, n=4))
    return f"{figure(middle)} ({figure(low)}–{figure(high)})"


def figure(value: float) -> str:
    """Three digits, or all in front of the point."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
