"""Every example runs, says what it promises, and uses nothing but the public API."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import paceline

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
PROMISES = {
    "generate.py": "-- 12 tokens, ended by length",
    "chat_stream.py": "draft tokens accepted",
    "compare.py": "-- identical: True",
    "async_streams.py": "steps for 3 answers",
    "structured.py": "-- the form holds: True",
}


def test_none_is_forgotten() -> None:
    assert {path.name for path in EXAMPLES} == set(PROMISES)


@pytest.mark.usefixtures("smollm2_path")
@pytest.mark.parametrize("name", PROMISES)
def test_it_runs(name: str) -> None:
    command = [sys.executable, "-W", "error", str(FOLDER / name), "12"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert PROMISES[name] in result.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_it_imports_public_names_only(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("paceline"):
            assert node.module == "paceline"
            assert {alias.name for alias in node.names} <= set(paceline.__all__)
