"""`paceline demo`: both answers, and the small table."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.cli.demo import PROMPT, Comparison

Invoke = Callable[..., Any]  # see conftest.py
ROWS = ("plain", "speculative", "speedup", "mean acceptance length", "identical text")


def table(shown: str) -> dict[str, str]:
    lines = shown.splitlines()[-len(ROWS) :]
    return {line[:24].strip(): line[24:] for line in lines}


@pytest.mark.usefixtures("smollm2_path")
def test_default_model(invoke: Invoke) -> None:
    result = invoke("demo")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert PROMPT in result.stdout
    assert result.stdout.count("We were very happy to hear that") == 2
    figures = table(result.stdout)
    assert tuple(figures) == ROWS
    assert figures["identical text"] == "yes"
    assert float(figures["mean acceptance length"].split()[0]) > 2


def test_colours_on_a_terminal(terminal: Invoke, long_llama_path: Path) -> None:
    run = terminal("demo", "-m", long_llama_path, "-k", 3, "--threads", 1)
    assert run.finish() == 0
    assert "\x1b[32m" in run.shown
    assert table(run.shown)["identical text"] == "yes"


def test_texts_that_differ(invoke: Invoke, long_llama_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Comparison, "is_identical", False)
    result = invoke("demo", "-m", long_llama_path)
    assert result.exit_code == 1
    assert table(result.stdout)["identical text"] == "no"


def test_bad_draft_length(invoke: Invoke, long_llama_path: Path) -> None:
    result = invoke("demo", "-m", long_llama_path, "-k", 99)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--num-speculative-tokens is 99" in result.stderr
