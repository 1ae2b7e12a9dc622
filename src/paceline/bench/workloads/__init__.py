"""Workloads: what a benchmark asks. Files of four formats, told apart by what is in them, and a suite of our own."""

from collections.abc import Mapping
from pathlib import Path

from paceline.bench.base import Workload
from paceline.bench.workloads.base import Format, Record, RecordError
from paceline.bench.workloads.builtin import BUILTIN, builtin_workload
from paceline.bench.workloads.loading import OnProblem, read_workload
from paceline.bench.workloads.plain import PlainFormat
from paceline.bench.workloads.selection import select
from paceline.bench.workloads.sharegpt import ShareGPTFormat
from paceline.bench.workloads.spec_bench import SpecBenchFormat
from paceline.bench.workloads.trace import TraceFormat
from paceline.errors import UsageError

FORMATS: Mapping[str, type[Format]] = {
    reader.name: reader for reader in (SpecBenchFormat, ShareGPTFormat, TraceFormat, PlainFormat)
}


def load_workload(source: str | Path, *, on_problem: OnProblem, format_name: str | None = None) -> Workload:
    """The embedded suite for the text "builtin", else the file at `source`.

    The format is the one that most of the first 100 records have, unless `format_name` says it. A record that holds no
    item, or an item with another's id, is skipped and stands in the workload's `problems` ("skip"), or all is refused
    ("refuse"). Raises UsageError for what is refused, for a file that cannot be read, is of no known format or holds no
    item at all, and for values that do not exist.
    """
    if on_problem not in ("skip", "refuse"):
        raise UsageError(f"on_problem is {on_problem!r}; expected 'skip' or 'refuse'")
    if source == BUILTIN:
        if format_name is not None:
            raise UsageError(f"the embedded suite has no format; leave out {format_name!r}, or give a file")
        return builtin_workload()
    return read_workload(Path(source), FORMATS, on_problem=on_problem, format_name=format_name)


__all__ = [
    "BUILTIN",
    "FORMATS",
    "Format",
    "OnProblem",
    "Record",
    "RecordError",
    "load_workload",
    "select",
]
