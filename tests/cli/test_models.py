"""`paceline models`: what is there of the models with a short name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.models import ALIASES

Invoke = Callable[..., Any]  # see conftest.py
FIELDS = ["name", "description", "path", "num_bytes", "is_present", "is_verified"]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("empty_cache")
def test_what_is_not_there(invoke: Invoke) -> None:
    result = invoke("models", "--verify")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "smollm2  SmolLM2-135M-Instruct" in result.stdout
    assert "not fetched yet" in result.stdout


@pytest.mark.usefixtures("smollm2_path")
def test_what_is_there(invoke: Invoke) -> None:
    [model] = json.loads(invoke("models", "--json").stdout)
    assert list(model) == FIELDS
    assert (model["name"], model["is_present"], model["is_verified"]) == ("smollm2", True, None)
    [model] = json.loads(invoke("models", "--json", "--verify").stdout)
    assert model["is_verified"] is True
    assert "hash verified" in invoke("models", "--verify").stdout


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_what_is_damaged(invoke: Invoke, empty_cache: Path, arguments: tuple[str, ...]) -> None:
    path = ALIASES["smollm2"].cached_path()
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(ALIASES["smollm2"].num_bytes)
    result = invoke("models", "--verify", *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"paceline: {empty_cache}")
    assert "is not the expected file; it will be fetched again" in result.stderr
    assert ("WRONG HASH" in result.stdout) or not json.loads(result.stdout)[0]["is_verified"]
