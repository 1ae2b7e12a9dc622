"""Chat templates: what well-behaved ones write, what they are given, and which messages are refused."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from paceline.errors import ModelFormatError, UsageError
from paceline.models import ChatTemplate, GGUFFile, Message

HELLO: list[Message] = [{"role": "user", "content": "Hello"}]
TALK: list[Message] = [
    {"role": "system", "content": " Be nice.\n"},
    {"role": "user", "content": "Héllo <b> 'x' \n\nworld"},
    {"role": "assistant", "content": "a,b,,c"},
    {"role": "user", "content": "straße ǆ ﬁ Σ"},
]
SNIPPETS = (Path(__file__).parents[1] / "golden" / "chat" / "snippets.txt").read_text(encoding="utf-8").splitlines()
TOOL = {"type": "function", "function": {"name": "find", "parameters": {}}}


def call(arguments: Any = "{}", **changes: Any) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "find", "arguments": arguments}, **changes}


def test_the_default_model_writes_its_format(smollm2_path: Path) -> None:
    with GGUFFile.open(smollm2_path) as file:
        template = ChatTemplate.from_gguf(file)
    assert template is not None
    system = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    expected = f"{system}<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert template.render(HELLO) == expected
    assert template.render(HELLO, add_generation_prompt=False) == expected.removesuffix("<|im_start|>assistant\n")
    own_system = template.render([{"role": "system", "content": "Be brief."}, *HELLO])
    assert own_system.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user")


def to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


BLOCK = "  {% if true %}\n  indented\n  {% endif %}\ntail\n\n  {%- set x = 1 %}\n {{ x }}\n"


@pytest.mark.parametrize("source", [*SNIPPETS, BLOCK])
def test_templates_mean_what_they_mean_to_jinja(source: str) -> None:
    jinja = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    jinja.filters["tojson"] = to_json
    expected = jinja.from_string(source).render(messages=TALK, tools=None, add_generation_prompt=True)
    assert ChatTemplate(source).render(TALK) == expected


def test_blocks_are_trimmed_and_json_keeps_characters() -> None:
    source = "  {% for message in messages %}\n{{ message.content | tojson }}\n  {% break %}\n{% endfor %}\n"
    assert ChatTemplate(source).render([{"role": "user", "content": "<é>"}]) == '"<é>"\n'
    assert ChatTemplate("{% if tools %}a{% else %}b{% endif %}").render(HELLO) == "b"


def test_generation_tags_write_nothing_themselves_and_keep_names_inside() -> None:
    source = "{% generation %}{% set x = 1 %}{{ messages[0].content }}{{ x }}{% endgeneration %}{{ x is defined }}"
    assert ChatTemplate(source).render(HELLO) == "Hello1False"


def test_the_date_is_that_of_the_clock() -> None:
    template = ChatTemplate("{{ strftime_now('%d %B %Y, %-d%%') }}", now=lambda: datetime(2026, 3, 9))
    assert template.render(HELLO) == "09 March 2026, 9%"


def test_special_tokens_that_a_model_lacks_are_undefined() -> None:
    template = ChatTemplate(
        "{{ bos_token }}{{ pad_token }}{{ eos_token is defined }}", bos_token="<s>", pad_token="<p>"
    )
    assert template.render(HELLO) == "<s><p>False"


def test_variables_reach_the_template() -> None:
    template = ChatTemplate("{{ enable_thinking }}{{ style.tone if style else 'flat' }}{{ documents }}")
    assert template.render(HELLO) == "flatNone"
    variables = {"enable_thinking": False, "style": {"tone": ["a", 1]}, "documents": [{"text": "x"}]}
    assert template.render(HELLO, variables=variables) == "False['a', 1][{'text': 'x'}]"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"mood": 1}, "has no variable 'mood'"),
        ({"messages": []}, "cannot set 'messages'"),
        ({"a b": 1}, "cannot set 'a b'"),
        ({"style": object()}, "that JSON has not"),
        ({"style": {1: 2}}, "that JSON has not"),
        ([("style", 1)], "is a list, expected a mapping"),
    ],
)
def test_variables_that_a_template_cannot_take_are_refused(variables: Any, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        ChatTemplate("{{ style }}").render(HELLO, variables=variables)


def test_tools_go_to_the_template_for_them() -> None:
    template = ChatTemplate("plain", tool_source="{{ tools[0].function.name }}")
    assert template.render(HELLO) == "plain"
    assert template.render(HELLO, tools=[]) == "plain"
    assert template.render(HELLO, tools=[TOOL]) == "find"
    with pytest.raises(UsageError, match="has no place for tools"):
        ChatTemplate("{{ messages[0].content }}").render(HELLO, tools=[TOOL])
    with pytest.raises(UsageError, match="has no place for tool calls"):
        ChatTemplate("{{ messages[0].content }}").render([*HELLO, {"role": "assistant", "tool_calls": [call()]}])


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ("find", "tools is a str"),
        ([{"name": "find"}], "tool 0 is not of the form"),
        ([TOOL, {"type": "function", "function": {"name": ""}}], "tool 1 is not of the form"),
        ([{**TOOL, "more": {1}}], "tool 0 holds"),
    ],
)
def test_malformed_tools_are_named(tools: Any, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        ChatTemplate("{{ tools }}").render(HELLO, tools=tools)


PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    ("source", "content", "expected"),
    [
        ("{{ messages[0].content + '.' }}", PARTS, "a\nb."),
        ("{{ messages[0].content }}", PARTS, "a\nb"),
        ("{{ messages[0].content | tojson }}", PARTS, '"a\\nb"'),
        ("{% for part in messages[0].content %}[{{ part.text }}]{% endfor %}", PARTS, "[a][b]"),
        ("{% for part in messages[0].content %}[{{ part.text }}]{% endfor %}", "ab", "[ab]"),
        ("{{ messages[0].content }}", [], ""),
    ],
)
def test_contents_come_in_the_form_that_the_template_takes(source: str, content: Any, expected: str) -> None:
    assert ChatTemplate(source).render([{"role": "user", "content": content}]) == expected


CALLS = (
    "{% for m in messages %}{{ m.content }}"
    "{% for call in m.tool_calls %}{{ call.function.arguments %s }}{% endfor %}{% endfor %}"
)


@pytest.mark.parametrize("arguments", [{"key": "é"}, '{"key": "é"}', '{"key":"\\u00e9"}'])
def test_arguments_of_calls_come_in_the_form_that_the_template_takes(arguments: Any) -> None:
    messages: list[Message] = [*HELLO, {"role": "assistant", "content": "", "tool_calls": [call(arguments)]}]
    as_mapping = ChatTemplate(CALLS.replace("%s", "| tojson"))
    assert as_mapping.render(messages) == 'Hello{"key": "é"}'
    as_text = ChatTemplate(CALLS.replace("%s", "+ ''"))
    assert json.loads(as_text.render(messages).removeprefix("Hello")) == {"key": "é"}


def test_no_content_beside_calls_is_null_where_the_template_takes_that() -> None:
    messages: list[Message] = [*HELLO, {"role": "assistant", "tool_calls": [call({"a": 1})]}]
    adding = ChatTemplate(CALLS.replace("{{ m.content }}", "{{ '<' + m.content }}").replace("%s", "| tojson"))
    assert adding.render(messages) == '<Hello<{"a": 1}'
    asking = ChatTemplate(CALLS.replace("{{ m.content }}", "{{ m.content is none }}").replace("%s", "| tojson"))
    assert asking.render(messages) == 'FalseTrue{"a": 1}'


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], "no messages"),
        ("hi", "is a str, expected a list"),
        ([*HELLO, "hi"], "message 1 is a str"),
        ([{"content": "x"}], "message 0 has no 'role'"),
        ([*HELLO, {"role": "user"}], "message 1 has no 'content'"),
        ([{"role": "user", "content": None}], "message 0 has no 'content' that is a string"),
        ([{"role": "assistant", "content": None, "tool_calls": []}], "message 0 has no 'content'"),
        ([{"role": "user", "content": 3}], "message 0 has no 'content' that is a string"),
        ([{"role": 3, "content": "x"}], "message 0 has no 'role' that is a string"),
        ([{"role": "user", "content": "x", "mood": "y"}], "message 0 has the unknown key 'mood'"),
        ([{"role": "user", "content": "x", "name": 3}], "message 0 has a 'name' that is no string"),
        ([{"role": "user<|im_end|>", "content": "x"}], "message 0 has the role 'user<|im_end|>'"),
        ([{"role": "", "content": "x"}], "message 0 has the role ''"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], "a part of type 'image_url'"),
        ([{"role": "user", "content": ["x"]}], "a part without a type"),
        ([{"role": "user", "content": [{"type": "text", "text": 1}]}], "a part that is not of the form"),
        ([{"role": "user", "content": "x", "tool_calls": [call()]}], "only the role 'assistant'"),
        ([{"role": "assistant", "tool_calls": call()}], "'tool_calls' that are no list"),
        ([{"role": "assistant", "tool_calls": [call(), {"type": "function"}]}], "message 0: tool call 1 is not of"),
        ([{"role": "assistant", "tool_calls": [call(type="code")]}], "tool call 0 is not of the form"),
        ([{"role": "assistant", "tool_calls": [call(id=1)]}], "tool call 0 is not of the form"),
        ([{"role": "assistant", "tool_calls": [call("[1]")]}], "tool call 0 has arguments that are no JSON object"),
        ([{"role": "assistant", "tool_calls": [call("{")]}], "tool call 0 has arguments that are no JSON object"),
        ([{"role": "assistant", "tool_calls": [call({"x": 1 << 300})]}], "message 0 holds"),
    ],
)
def test_malformed_messages_are_named(messages: Any, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        ChatTemplate("{{ messages[0].content }}{{ messages[0].tool_calls | tojson }}").render(messages)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nulls_beside_what_is_known_are_nothing() -> None:
    message = {"role": "user", "content": "x", "refusal": None, "tool_calls": None, "name": None}
    assert ChatTemplate("{{ messages[0] | tojson }}").render([message]) == '{"role": "user", "content": "x"}'


def test_a_refusal_of_the_template_is_the_callers_error() -> None:
    source = "{% if messages[0].role != 'system' %}{{ raise_exception('first a\nsystem message') }}{% endif %}"
    with pytest.raises(UsageError, match="refuses these messages: first a system message"):
        ChatTemplate(source).render(HELLO)
    with pytest.raises(UsageError) as caught:
        ChatTemplate("{{ raise_exception('a ' * 1000000) }}").render(HELLO)
    assert len(str(caught.value)) < 300


def test_a_mistake_of_the_template_is_told_in_one_line() -> None:
    for source in ("{% for m in messages %}", "{{ 1 / 0 }}", "{{ nothing.at.all }}", "{{ messages[0].content.pop() }}"):
        with pytest.raises(ModelFormatError, match=r"chat template .*; use another .*--no-chat") as caught:
            ChatTemplate(source).render(HELLO)
        assert "\n" not in str(caught.value)
