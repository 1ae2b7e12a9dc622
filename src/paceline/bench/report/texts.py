"""Figures and foreign strings as words that people read: one way for the terminal, Markdown and HTML."""

import json
from collections.abc import Mapping
from typing import Any

from paceline.bench.plain_values import flat
from paceline.models.quoting import readable

MISSING = "–"  # a figure that there is none of

# What has no glyph or would be obeyed instead of shown; whatever comes from prompts and models may hold anything.
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)), "\ufffd")


def clean(text: str) -> str:
    """One line that every output can hold: no controls, no breaks, no orders of direction, no lone surrogates."""
    return readable(text.replace("\n", "⏎")).translate(_CONTROLS)


def number(value: float | None) -> str:
    """About three digits, never an exponent for what a benchmark measures."""
    if value is None:
        return MISSING
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3g}"


def ratio(value: float | None) -> str:
    """Two digits behind the point; a third where two would read as exactly 1."""
    if value is None:
        return MISSING
    short = f"{value:.2f}"
    return f"{value:.3f}" if short == "1.00" and value != 1 else short


def interval(value: float | None, ends: tuple[float, float] | None) -> str:
    if value is None or ends is None:
        return ratio(value)
    return f"{ratio(value)} ({ratio(ends[0])} to {ratio(ends[1])})"


def percent(share: float | None) -> str:
    """100 % and 0 % only for all and for none."""
    if share is None:
        return MISSING
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def size(num_bytes: int | None) -> str:
    """In the units of 1,000, as files are measured."""
    if num_bytes is None:
        return MISSING
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if num_bytes >= scale:
            return f"{number(num_bytes / scale)} {unit}"
    return f"{num_bytes} B"


def duration(seconds: float | None) -> str:
    """h:mm:ss, or m:ss below an hour."""
    if seconds is None:
        return MISSING
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shares(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {percent(share)}" for name, share in parts.items()) or MISSING


def short_name(text: str, limit: int = 80) -> str:
    """Whole, but for what nobody would give as a name."""
    shown = clean(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 20]}…{shown[-19:]}"


def shortened(text: str, limit: int = 24) -> str:
    """For places that a long name would burst."""
    shown = clean(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def facts(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Plain JSON values as lines of a name and a text."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        for name, value in flat(values)
    ]
