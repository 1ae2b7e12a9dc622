"""`response_format`: every form that is taken, as one value, and every one that is not, by name."""

from typing import Any

import pytest

from paceline.errors import UsageError
from paceline.response_format import MAX_GRAMMAR_BYTES, MAX_SCHEMA_BYTES, ResponseFormat
from paceline.sampling_params import SamplingParams

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"b": {}, "a": {"const": "é"}}}


def of(given: object) -> object:
    return SamplingParams(response_format=given).response_format  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, ResponseFormat("json_object")),
        (
            {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
            ResponseFormat(
                "json_schema", '{"type":"object","properties":{"b":{},"a":{"const":"\\u00e9"}}}'
            ),  # the order of the keys is the order in which a model writes them
        ),
        (
            {
                "type": "json_schema",
                "json_schema": {"name": "n", "description": "d", "strict": True, "schema": {"type": "string"}},
            },
            ResponseFormat("json_schema", '{"type":"string"}'),
        ),
        ({"type": "json_schema", "json_schema": {"schema": {}, "strict": None}}, ResponseFormat("json_schema", "{}")),
        ({"type": "regex", "pattern": "[0-9]+"}, ResponseFormat("regex", "[0-9]+")),
        ({"type": "grammar", "grammar": 'start: "a"'}, ResponseFormat("grammar", 'start: "a"')),
    ],
)
def test_forms(given: object, kept: ResponseFormat | None) -> None:
    assert of(given) == kept
    assert of(kept) == kept
    params = SamplingParams(response_format=given)  # type: ignore[arg-type]
    assert len({params, SamplingParams(response_format=kept)}) == 1


def test_the_callers_schema_may_change_afterwards() -> None:
    schema = {"type": "string"}
    kept = of({"type": "json_schema", "json_schema": {"schema": schema}})
    schema["type"] = "integer"
    assert kept == ResponseFormat("json_schema", '{"type":"string"}')


deep: dict[str, Any] = {}
for _ in range(100_000):
    deep = {"not": deep}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("json", "response_format is 'json'; expected None or a mapping with a type"),
        ({}, "response_format.type is None; expected one of 'text', 'json_object', 'json_schema', 'regex', 'grammar'"),
        ({"type": "json"}, "response_format.type is 'json'"),
        ({"type": ["regex"]}, r"response_format.type is \['regex'\]"),
        ({"type": "text", "schema": {}}, "response_format has the key 'schema'; expected 'type'"),
        ({"type": "json_object", "schema": {}}, "response_format has the key 'schema'"),
        ({"type": "json_schema", "schema": {}}, "has the key 'schema'; expected 'json_schema', 'type'"),
        ({"type": "json_schema"}, "response_format.json_schema is None; expected a mapping with a schema"),
        ({"type": "json_schema", "json_schema": {}}, "json_schema.schema is None; expected a JSON schema"),
        ({"type": "json_schema", "json_schema": {"schema": "{}"}}, "json_schema.schema is '{}'"),
        ({"type": "json_schema", "json_schema": {"schema": {}, "kind": 1}}, "json_schema has the key 'kind'"),
        ({"type": "json_schema", "json_schema": {"schema": {}, "name": 1}}, "json_schema.name is 1; expected a text"),
        ({"type": "json_schema", "json_schema": {"schema": {}, "strict": 1}}, "strict is 1; expected None, True or"),
        ({"type": "json_schema", "json_schema": {"schema": {"x-guidance": {}}}}, "has the key 'x-guidance'"),
        ({"type": "json_schema", "json_schema": {"schema": {"const": {1}}}}, "cannot be written as JSON"),
        ({"type": "json_schema", "json_schema": {"schema": {"const": float("nan")}}}, "cannot be written as JSON"),
        ({"type": "json_schema", "json_schema": {"schema": deep}}, "cannot be written as JSON"),
        (
            {"type": "json_schema", "json_schema": {"schema": {"const": "x" * MAX_SCHEMA_BYTES}}},
            "json_schema.schema has 65,548 bytes; expected at most 65,536",
        ),
        ({"type": "regex"}, "response_format.pattern is None; expected a regular expression"),
        ({"type": "regex", "pattern": ""}, "response_format.pattern is ''"),
        ({"type": "regex", "pattern": "a\\\\\\"}, "response_format.pattern ends in a backslash that escapes nothing"),
        ({"type": "regex", "pattern": "a\ud800"}, "a lone surrogate"),
        ({"type": "regex", "pattern": "é" * MAX_GRAMMAR_BYTES}, "has 65,536 bytes; expected at most 32,768"),
        ({"type": "grammar", "grammar": 3}, "response_format.grammar is 3; expected a Lark or GBNF grammar"),
        ({"type": "grammar", "pattern": "a"}, "response_format has the key 'pattern'; expected 'grammar', 'type'"),
    ],
)
def test_what_is_no_form_is_refused(given: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        of(given)
