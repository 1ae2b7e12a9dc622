"""The program as a whole: version, help, and that it starts without what it does not need."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from typer.main import get_command

import paceline
from paceline.api.speculation import DEFAULT_NUM_SPECULATIVE_TOKENS, MAX_SPECULATIVE_TOKENS
from paceline.cli.app import app
from paceline.cli.options import ProposerName
from paceline.controller import OFF
from paceline.proposers import PROPOSERS

Invoke = Callable[..., Any]  # see conftest.py
COMMANDS = ("generate", "chat", "profile", "inspect", "demo", "verify", "models", "bench")


def test_version(invoke: Invoke) -> None:
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"paceline {paceline.__version__}\n")


def test_help_lists_every_command(invoke: Invoke) -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert tuple(get_command(app).commands) == COMMANDS  # type: ignore[attr-defined]
    for command in COMMANDS:
        assert f"  {command} " in result.stdout
        assert invoke(command, "-h").stdout == invoke(command, "--help").stdout


def test_every_option_has_help() -> None:
    commands = dict(get_command(app).commands)  # type: ignore[attr-defined]
    groups = commands["models"], commands["bench"]
    for name, command in (*commands.items(), *(each for group in groups for each in group.commands.items())):
        assert command.help
        for parameter in command.params:
            assert parameter.name == "help" or parameter.help, f"{name} {parameter.name}"


def test_help_tells_the_truth(invoke: Invoke) -> None:
    shown = " ".join(invoke("generate", "--help").stdout.split())
    assert f"1 to {MAX_SPECULATIVE_TOKENS}; {DEFAULT_NUM_SPECULATIVE_TOKENS} if not given" in shown
    assert [str(name) for name in ProposerName] == [OFF, *PROPOSERS]


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (["--help"], "numpy rich tokenizers jinja2 llguidance"),
        (["generate", "--help"], "numpy rich tokenizers jinja2 llguidance"),
        (["--version"], "numpy rich tokenizers jinja2"),
        (["models"], "rich tokenizers jinja2"),
    ],
)
def test_starts_without_the_heavy_parts(arguments: list[str], spared: str) -> None:
    script = (
        "import sys\nfrom paceline.cli import main\n"
        f"try:\n    main()\nfinally:\n    print(set({spared.split()}) & set(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    assert result.stderr == "set()\n"
