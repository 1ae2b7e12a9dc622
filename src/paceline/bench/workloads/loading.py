"""From a file to a workload: which format it has, what its records mean, and what is wrong with it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from paceline.bench.base import ALL, Item, Problem, Workload
from paceline.bench.workloads import fields as check
from paceline.bench.workloads.base import Format, Record, RecordError
from paceline.bench.workloads.records import read_records
from paceline.errors import UsageError
from paceline.registry import Registry

OnProblem = Literal["skip", "refuse"]
Formats = Mapping[str, type[Format]]
NUM_LOOKED_AT = 100  # records that tell the format
NUM_SHOWN = 5  # problems in an error
RESERVED = (ALL, "*")  # classes that would be taken for all of them, the latter in a requirement


def read_workload(path: Path, formats: Formats, *, on_problem: OnProblem, format_name: str | None) -> Workload:
    """As `load_workload`, of a file."""
    found = read_records(path)
    head = list(islice(found, NUM_LOOKED_AT))
    if not head:
        raise UsageError(f"the workload {str(path)!r} is empty; expected {_known(formats)}")
    name = format_name if format_name is not None else _recognised(path, head, formats)
    items, problems = _read(chain(head, found), Registry("workload format", formats).create(name, {}))
    if problems and (on_problem == "refuse" or not items):
        raise UsageError(_refusal(path, name, len(items), problems))
    return Workload(path.name, tuple(items), tuple(problems))


def _read(found: Iterable[Record | Problem], reader: Format) -> tuple[list[Item], list[Problem]]:
    items: list[Item] = []
    problems: list[Problem] = []
    places: dict[str, str] = {}
    for record in found:
        if isinstance(record, Problem):
            problems.append(record)
            continue
        try:
            item = reader.item(_fields(record), record.name)
            if item.task_class in RESERVED:
                raise RecordError(f"the task class {item.task_class!r} stands for all of them; expected another name")
            if item.id in places:
                raise RecordError(
                    f"the id {check.shown(item.id)} is that of {places[item.id]}; expected one of its own"
                )
        except RecordError as error:
            problems.append(Problem(record.line, record.describe(str(error))))
        else:
            places[item.id] = record.name.replace("-", " ")
            items.append(item)
    return items, problems


def _fields(record: Record) -> Mapping[str, Any]:
    if not isinstance(record.value, dict):
        raise RecordError(f"found {check.shown(record.value)}; expected a JSON object")
    return record.value


def _recognised(path: Path, head: Iterable[Record | Problem], formats: Formats) -> str:
    """The name of the format that most of the first records have; the first of equals, in the registry's order."""
    keys = [frozenset(r.value) for r in head if isinstance(r, Record) and isinstance(r.value, dict)]
    votes = Counter(next((name for name in formats if formats[name].recognises(k)), None) for k in keys)
    del votes[None]
    if votes:
        return max(formats, key=lambda name: votes[name])
    raise UsageError(f"the workload {str(path)!r} is of no known format: {_found(head)}; expected {_known(formats)}")


def _found(head: Iterable[Record | Problem]) -> str:
    """What the file begins with."""
    first = next(iter(head))
    if isinstance(first, Problem):
        return f"line {first.line} is {first.message}"
    if isinstance(first.value, dict):
        return f"the record at line {first.line} has the keys {check.shown_keys(first.value)}"
    return f"line {first.line} holds {check.shown(first.value)}"


def _known(formats: Formats) -> str:
    return "; or ".join(f"{name}, {formats[name].looks_like}" for name in formats)


def _refusal(path: Path, name: str, num_items: int, problems: list[Problem]) -> str:
    shown = "; ".join(f"line {problem.line}: {problem.message}" for problem in problems[:NUM_SHOWN])
    more = f"; and {len(problems) - NUM_SHOWN} more" if len(problems) > NUM_SHOWN else ""
    advice = "correct them, or have them skipped" if num_items else "it holds nothing else"
    return f"the workload {str(path)!r}, read as {name}, has {len(problems)} bad records: {shown}{more}; {advice}"
