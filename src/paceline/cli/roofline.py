"""What `paceline profile --roofline` prints: steps taken apart, each part beside its limit."""

from typing import Any

from paceline.runtime.roofline import Limits, Part, Roofline, Step

_COLUMNS = ("part", "MB", "10⁶\nmul-adds", "ms", "share", "limit\nms", "set by", "of\nlimit")


def as_json(roofline: Roofline, limits: Limits) -> dict[str, Any]:
    """Rates in 10⁹ a second, times of steps and parts in ms.

    The `ms` of a step's parts add up to `step_ms`, those of its native parts and their rest to `forward_ms`. A part's
    `waiting_ms` is not in its `ms`, but in that of the part `waiting`. `reading_ms` and `multiplying_ms` are what all
    bytes and all products of a step take at the limits. `limit_ms`, `limit_set_by` ("bytes" or "arithmetic") and
    `of_limit` (the limit over the time) are null for parts that have no limit, `shape` and `types` for all but
    products. A step's `limit_ms` is the sum of its parts'.
    """
    return {
        "code_rate_g_per_s": limits.code_rate / 1e9,
        "float_rate_g_per_s": limits.float_rate / 1e9,
        "steps": [_step_json(step, limits) for step in roofline.steps],
    }


def _step_json(step: Step, limits: Limits) -> dict[str, Any]:
    return {
        "rows": step.rows,
        "context": step.context,
        "step_ms": step.seconds * 1e3,
        "forward_ms": step.forward * 1e3,
        "reading_ms": limits.reading(step.work) * 1e3,
        "multiplying_ms": limits.multiplying(step.work) * 1e3,
        "limit_ms": step_limit(step, limits) * 1e3,
        "parts": [_part_json(part, step, limits) for part in step.parts],
    }


def _part_json(part: Part, step: Step, limits: Limits) -> dict[str, Any]:
    limit = limits.limit(part.work) if part.has_limit else None
    return {
        "name": part.name,
        "shape": part.shape or None,
        "types": part.types or None,
        "bytes": part.work.num_bytes,
        "multiply_adds": part.work.multiply_adds,
        "ms": part.seconds * 1e3,
        "waiting_ms": part.waiting * 1e3,
        "share": part.seconds / step.seconds,
        "limit_ms": None if limit is None else limit * 1e3,
        "limit_set_by": None if limit is None else limits.bound(part.work),
        "of_limit": None if limit is None or not part.seconds else limit / part.seconds,
    }


def step_limit(step: Step, limits: Limits) -> float:
    """Seconds: the sum of the parts' limits, for one begins when the other ends."""
    return sum(limits.limit(part.work) for part in step.parts if part.has_limit)


def print_tables(roofline: Roofline, limits: Limits, console: Any) -> None:
    console.print(
        f"Best rates: {limits.bandwidth / 1e9:.1f} GB/s read, {limits.code_rate / 1e9:.0f} · 10⁹ products of codes and "
        f"{limits.float_rate / 1e9:.0f} · 10⁹ float32 multiply-adds a second.\n",
        soft_wrap=True,
    )
    for step in roofline.steps:
        console.print(_table(step, limits))


def _table(step: Step, limits: Limits) -> Any:
    from rich import box
    from rich.table import Table

    rows = "1 row" if step.rows == 1 else f"{step.rows} rows"
    tokens = "1 cached token" if step.context == 1 else f"{step.context} cached tokens"
    title = f"A step of {rows} behind {tokens}"
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE, show_footer=True, collapse_padding=True, pad_edge=False
    )
    limit = step_limit(step, limits)
    total = ("step", *_amounts(step.work.num_bytes, step.work.multiply_adds), f"{step.seconds * 1e3:.2f}", "100.0%")
    footers = (*total, f"{limit * 1e3:.2f}", "", f"{limit / step.seconds:.0%}")
    for heading, footer in zip(_COLUMNS, footers, strict=True):
        is_text = heading in ("part", "set by")
        table.add_column(heading, footer=footer, justify="left" if is_text else "right", no_wrap=heading != "part")
    for part in step.parts:
        table.add_row(*_cells(part, step, limits))
    return table


def _cells(part: Part, step: Step, limits: Limits) -> list[str]:
    cells = [
        "\n".join(filter(None, (part.name, part.shape, part.types))),
        *_amounts(part.work.num_bytes, part.work.multiply_adds),
        f"{part.seconds * 1e3:.3f}",
        f"{part.seconds / step.seconds:.1%}",
    ]
    if not part.has_limit:
        return [*cells, "", "", ""]
    limit = limits.limit(part.work)
    share = f"{limit / part.seconds:.0%}" if part.seconds else ""
    return [*cells, f"{limit * 1e3:.3f}", limits.bound(part.work), share]


def _amounts(num_bytes: int, multiply_adds: int) -> tuple[str, str]:
    return (f"{num_bytes / 1e6:.2f}" if num_bytes else "", f"{multiply_adds / 1e6:.1f}" if multiply_adds else "")
