"""A result as Markdown: its headline and the tables that one reads first."""

import re

from paceline.bench.report.headline import headline
from paceline.bench.report.tables import (
    Table,
    advice_table,
    differences_table,
    forward_table,
    replay_table,
    summary_tables,
)
from paceline.bench.report.texts import clean
from paceline.bench.result import Result

# What Markdown or the HTML in it would take for more than a character.
_MARKS = re.compile(r"([\\`*_\[\]<>|&#~])")


def markdown(result: Result) -> str:
    """Ends with a newline. Tables that would be empty are left out."""
    found = headline(result)
    tables = (
        *summary_tables(result.runs),
        *(advice_table(result.advice), differences_table(result.differences)),
        *(replay_table(result.replay), forward_table(result)),
    )
    parts = [f"**{found.title}.** {escaped(found.sentence)}."]
    if not result.is_complete:
        parts.append("**Interrupted**: the figures are of what was measured until then.")
    parts += [table_text(table) for table in tables if table.has_figures]
    parts += ["\n".join(f"- {escaped(clean(note))}" for note in result.notes)] if result.notes else []
    return "\n\n".join(parts) + "\n"


def table_text(table: Table) -> str:
    """The table under its title in bold."""
    rules = ["---" if column.kind in ("key", "text") else "--:" for column in table.columns]
    headings = [escaped(column.heading) for column in table.columns]
    rows = [headings, rules, *([escaped(cell) for cell in row] for row in table.rows)]
    return f"**{escaped(table.title)}**\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)
