"""Two results beside each other, as tables."""

from collections.abc import Sequence

from paceline.bench.base import load_label
from paceline.bench.compare import Change, Comparison, Row
from paceline.bench.report.tables import Column, Table
from paceline.bench.report.texts import MISSING, clean, interval, number, short_name


def comparison_tables(comparison: Comparison) -> tuple[Table, ...]:
    """What changed and whether it is noise; then what of the fingerprint and of the rest was not the same."""
    return (
        _rows(comparison.rows),
        _changes("Not the same: figures are of different things", comparison.fingerprint),
        _changes("Not the same, and does not matter by itself", comparison.changes),
    )


def comparison_notes(comparison: Comparison) -> list[str]:
    """Sentences about what only one of them holds."""
    parts = (("first", comparison.only_first), ("second", comparison.only_second))
    return [clean(f"Only in the {which}: {'; '.join(places)}.") for which, places in parts if places]


def _rows(rows: Sequence[Row]) -> Table:
    columns = (
        *(Column("class", "key"), Column("mode", "key"), Column("load", "key"), Column("figure", "key")),
        *(Column("first"), Column("second"), Column("ratio (95 %)"), Column("verdict", "verdict")),
    )
    return Table("Second against first", columns, tuple(map(_row, rows)), num_groups=1)


def _row(row: Row) -> tuple[str, ...]:
    load = load_label(row.concurrency, row.request_rate)
    change = MISSING if row.ratio is None else interval(row.ratio, row.interval)
    return (
        *(short_name(row.task_class), short_name(row.mode), load, row.figure),
        *(number(row.first), number(row.second), change, row.verdict),
    )


def _changes(title: str, changes: Sequence[Change]) -> Table:
    columns = (Column("what", "key"), Column("first", "text"), Column("second", "text"))
    return Table(title, columns, tuple((clean(c.name), clean(c.first), clean(c.second)) for c in changes))
