"""`paceline generate` with a form for the answer: --json-schema, --regex, --grammar."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Invoke = Callable[..., Any]  # see conftest.py
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
GRAMMAR = 'start: "yes" | "no" NUMBER\nNUMBER: /[0-9]{2}/\n'


def text_of(invoke: Invoke, path: Path, *arguments: str) -> str:
    result = invoke("generate", "hello", "--model", str(path), "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return str(json.loads(result.stdout)["text"])


def test_forms(invoke: Invoke, tiny_llama_path: Path, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA), encoding="utf-8-sig")  # as some editors do
    (tmp_path / "g.lark").write_text(GRAMMAR, encoding="utf-8-sig")
    for given in (json.dumps(SCHEMA), str(tmp_path / "s.json")):
        answer = json.loads(text_of(invoke, tiny_llama_path, "--json-schema", given))
        assert isinstance(answer["ok"], bool)
        assert len(answer) == 1
    assert re.fullmatch("a{3,5}b", text_of(invoke, tiny_llama_path, "--regex", "^a{3,5}b$"))
    drafted = ("--proposer", "ngram", "--temperature", "1", "--seed", "2")
    answer = text_of(invoke, tiny_llama_path, "--grammar", str(tmp_path / "g.lark"), *drafted)
    assert re.fullmatch("yes|no[0-9]{2}", answer)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--regex", "a", "--grammar", "g"], "--regex and --grammar are given; an answer has one form"),
        (["--json-schema", ""], "--json-schema is ''; expected JSON text, or the path"),
        (["--json-schema", "{"], "--json-schema '{' is no JSON: "),
        (["--json-schema", "[" * 10], f"--json-schema '{'[' * 10}' cannot be read: No such file"),
        (["--json-schema", '{"a":' * 100_000], "is nested too deeply"),
        (["--grammar", "/nowhere/g.lark"], "--grammar '/nowhere/g.lark' cannot be read: No such file"),
        (["--grammar", str(Path(__file__).parent)], "cannot be read: Is a directory"),
        (["--regex", ""], "response_format.pattern is ''"),
        (["--regex", "["], "response_format.pattern cannot be compiled: "),
    ],
)
def test_what_is_no_form_is_refused(invoke: Invoke, tiny_llama_path: Path, arguments: list[str], message: str) -> None:
    result = invoke("generate", "hello", "--model", str(tiny_llama_path), *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_files_that_hold_something_else(invoke: Invoke, tiny_llama_path: Path, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("[1, 2")
    (tmp_path / "g.lark").write_bytes(b"\xff\xfe")
    for option, name, message in (
        ("--json-schema", "s.json", "holds text that is no JSON"),
        ("--grammar", "g.lark", "expected a text file in UTF-8"),
    ):
        result = invoke("generate", "hello", "--model", str(tiny_llama_path), option, str(tmp_path / name))
        assert result.exit_code == 2
        assert message in result.stderr
