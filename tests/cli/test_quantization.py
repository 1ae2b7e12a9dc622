"""`--quantization` on the commands that load a model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hf_files import write_folder, write_tokenizer

from paceline.cli.options import QuantizationName
from paceline.models import Quantization

Invoke = Callable[..., Any]  # see conftest.py


@pytest.mark.parametrize("command", [("generate", "hi"), ("chat",), ("profile",)])
def test_refused_for_files_that_are_packed_already(
    invoke: Invoke, tiny_llama_path: Path, command: tuple[str, ...]
) -> None:
    result = invoke(*command, "-m", tiny_llama_path, "--quantization", "q4", input=b"hi\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "leave out --quantization" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_answers_in_each(invoke: Invoke, tmp_path: Path) -> None:
    write_folder(tmp_path)
    write_tokenizer(tmp_path)
    for quantization in ((), ("--quantization", "q8"), ("--quantization", "q4")):
        result = invoke("generate", "--json", "-m", tmp_path, "--max-tokens", 4, *quantization, "hi")
        assert (result.exit_code, result.stderr) == (0, "")
        assert json.loads(result.stdout)["usage"]["completion_tokens"] > 0


def test_the_names_are_those_that_there_are() -> None:
    assert tuple(str(name) for name in QuantizationName) == get_args(Quantization)
