"""Sources that would take minutes or gigabytes are refused with a message, and steps have bounds of their own."""

import json
from typing import Any

import pytest
from toy_grammars import compiled, regex

from paceline.acceptance.grammar import GrammarCompiler, GrammarError, trial
from paceline.acceptance.grammar.compiler import MAX_CACHED, MAX_CACHED_BYTES
from paceline.errors import PacelineError, UsageError
from paceline.response_format import ResponseFormat, checked_format

TEXTS = [bytes([byte]) for byte in range(256)]


def schema(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"schema": value}}


def doubling(keyword: str, levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {"d0": {"type": "object", "properties": {"a": {"type": "string"}}}}
    for i in range(1, levels):
        definitions[f"d{i}"] = {keyword: [{"$ref": f"#/$defs/d{i - 1}"}] * 2}
    return schema({"$ref": f"#/$defs/d{levels - 1}", "$defs": definitions})


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        value = {"type": "array", "items": value}
    return schema(value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (nested(300), "recursion limit"),
        (schema({"$ref": "#"}), "no token of the vocabulary can come next"),
        (schema({"allOf": [{"$ref": "#"}, {"type": "object"}]}), "circular references"),
        (doubling("oneOf", 25), "oneOf constraints are not supported"),
        (
            schema({"allOf": [{"properties": {f"a{i}": {"type": "string"}}} for i in range(300)]}),
            "schema too large",
        ),
        ({"type": "regex", "pattern": "(" * 1000 + "a" + ")*" * 1000}, "cannot be compiled"),
        ({"type": "grammar", "grammar": "start: " + "(" * 1000 + '"a"' + ")" * 1000}, "too deeply nested"),
        ({"type": "grammar", "grammar": "root ::= " + "(" * 1000 + '"a"' + ")" * 1000}, "cannot be compiled"),
        ({"type": "regex", "pattern": "x" * 400 + "("}, r'"x{80}…" \(in regex\): unclosed group$'),
        (
            {"type": "regex", "pattern": "x" * 400 + "\\b"},
            r'"x{80}…" \(in regex\): lookarounds not supported yet; WordU',
        ),
        (
            {"type": "grammar", "grammar": "start: " + "|".join(f'"w{i}"' for i in range(3000))},
            "cannot be compiled for this vocabulary: .*3001 items",
        ),
        (schema({"type": "object", "properties": {f"{i:x}": {} for i in range(1500)}}), "items"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_nasty_sources_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises((UsageError, GrammarError), match=message):
        mask = compiled(TEXTS, given).mask([])
        for byte in b'{"':
            mask.allowed([])
            mask.extend([byte])


@pytest.mark.parametrize(
    "given",
    [
        schema({"type": "string", "minLength": 10**6, "maxLength": 10**9}),
        schema({"type": "array", "minItems": 10**6, "items": {"type": "array", "minItems": 10**6}}),
        doubling("anyOf", 25),
        doubling("allOf", 25),
        schema({"enum": [f"value {i}" for i in range(4000)]}),
        {"type": "regex", "pattern": "a{1,1000000000}"},
        {"type": "regex", "pattern": "((a{1,1000}){1,1000}){1,1000}"},
        {"type": "regex", "pattern": "[a-z ]*a[a-z ]{300}"},
        {"type": "grammar", "grammar": 'start: ((("a"{1,1000}){1,1000}){1,1000}){1,1000}'},
    ],
    ids=lambda value: str(value)[:50],
)
def test_large_languages_of_small_sources_begin(given: dict[str, Any]) -> None:
    mask = compiled(TEXTS, given).mask([])
    assert mask.allowed([]).any()


def test_compiling_that_takes_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kilobyte that would take minutes and gigabytes; by processor time, by memory, by the clock."""
    patterns = [{"type": "string", "pattern": f".*a.{{{i}}}b.*"} for i in range(30)]
    given = schema({"allOf": patterns})
    monkeypatch.setattr(trial, "MAX_SECONDS", 1)
    with pytest.raises(UsageError, match="takes more than 1 seconds of processor time or 1024 MiB to compile"):
        compiled(TEXTS, given)
    monkeypatch.setattr(trial, "MAX_WALL_SECONDS", 0.3)
    with pytest.raises(UsageError, match=r"takes more than 0\.3 seconds to compile; make it simpler"):
        compiled(TEXTS, given)
    monkeypatch.setattr(trial, "MAX_WALL_SECONDS", 60.0)
    monkeypatch.setattr(trial, "MAX_SECONDS", 30)
    monkeypatch.setattr(trial, "MAX_BYTES", 1 << 28)
    with pytest.raises(UsageError, match="or 256 MiB to compile"):
        compiled(TEXTS, given)


def test_trial_that_cannot_run_is_no_fault_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_WORKER", trial._WORKER.with_name("missing.py"))
    with pytest.raises(
        PacelineError, match=r"could not be compiled: the process that tries it exited with 2"
    ) as caught:
        regex(TEXTS, "never seen before")
    assert not isinstance(caught.value, UsageError)


def test_memory_of_compiled_grammars_is_bounded() -> None:
    compiler = GrammarCompiler(len(TEXTS), lambda token: TEXTS[token])
    first = compiler.compile(ResponseFormat("json_object"))
    assert compiler.known(ResponseFormat("json_object")) is first
    assert compiler.compile(ResponseFormat("json_object")) is first
    large = [ResponseFormat("json_schema", json.dumps({"const": f"{i}" + "x" * 60000})) for i in range(5)]
    for response_format in large:
        compiler.compile(response_format)
    assert compiler.known(ResponseFormat("json_object")) is None
    known = [each for each in large if compiler.known(each) is not None]
    assert known == large[1:]
    assert sum(len(each.source) for each in known) <= MAX_CACHED_BYTES
    assert len(known) <= MAX_CACHED


def test_equal_formats_are_compiled_once() -> None:
    given = {"type": "regex", "pattern": "same"}
    assert compiled(TEXTS, given) is compiled(TEXTS, dict(given))
    assert checked_format(given) == checked_format(dict(given))
