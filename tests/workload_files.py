"""Files of workloads for tests: written, loaded, and refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from paceline.bench.base import Workload
from paceline.bench.workloads import load_workload
from paceline.errors import UsageError

GOOD = '{"prompt": "Hi."}'


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "work.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def loaded(folder: Path, *records: Any) -> Workload:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    return load_workload(written(folder, "\n".join(lines)), on_problem="skip")


def problem(folder: Path, record: Any, good: Any) -> str:
    """What is said of a record in a file with a good one."""
    workload = loaded(folder, good, record)
    assert len(workload.items) == 1
    [found] = workload.problems
    assert found.line == 2
    return found.message


def refused(path: Path | str, **options: Any) -> str:
    with pytest.raises(UsageError) as error:
        load_workload(path, **({"on_problem": "skip"} | options))
    return str(error.value)
