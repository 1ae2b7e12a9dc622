"""Chat templates: what well-behaved ones write, and what hostile ones cannot do."""

from pathlib import Path
from typing import Any

import pytest
from gguf_files import write_tiny_llama

from paceline.errors import ModelFormatError, UsageError
from paceline.models import ChatTemplate, GGUFFile, Message

GROWING = "{%% set ns = namespace(x='xx') %%}{%% for i in range(60) %%}{%% set ns.x = %s %%}{%% endfor %%}"
HELLO: list[Message] = [{"role": "user", "content": "Hello"}]


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


def test_a_file_may_have_no_template(tmp_path: Path) -> None:
    path = tmp_path / "bare.gguf"
    write_tiny_llama(path, extra_metadata={"tokenizer.chat_template": None})
    with GGUFFile.open(path) as file:
        assert ChatTemplate.from_gguf(file) is None


def test_names_of_special_tokens_are_given_to_the_template(tmp_path: Path) -> None:
    path = tmp_path / "names.gguf"
    write_tiny_llama(path, extra_metadata={"tokenizer.chat_template": "{{ bos_token }}|{{ eos_token }}"})
    with GGUFFile.open(path) as file:
        template = ChatTemplate.from_gguf(file)
    assert template is not None
    assert template.render(HELLO) == "<|im_start|>|<|im_end|>"


def test_blocks_are_trimmed_and_json_keeps_characters() -> None:
    source = "  {% for message in messages %}\n{{ message.content | tojson }}\n  {% break %}\n{% endfor %}\n"
    assert ChatTemplate(source).render([{"role": "user", "content": "<é>"}]) == '"<é>"\n'
    assert ChatTemplate("{% if tools %}a{% else %}b{% endif %}").render(HELLO) == "b"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], "no messages"),
        ([*HELLO, "hi"], "message 1 is a str"),
        ([{"content": "x"}], "message 0 has no 'role'"),
        ([*HELLO, {"role": "user"}], "message 1 has no 'content'"),
        ([{"role": "user", "content": None}], "message 0 has no 'content' that is a string"),
        ([{"role": 3, "content": "x"}], "message 0 has no 'role' that is a string"),
        ([{"role": "user", "content": "x", "name": "y"}], "message 0 has the unknown key 'name'"),
        ([{"role": "user<|im_end|>", "content": "x"}], "message 0 has the role 'user<|im_end|>'"),
        ([{"role": "", "content": "x"}], "message 0 has the role ''"),
    ],
)
def test_malformed_messages_are_named(messages: list[Any], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        ChatTemplate("{{ messages[0].content }}").render(messages)
    assert expected in str(caught.value)


def test_a_refusal_of_the_template_is_the_callers_error() -> None:
    source = "{% if messages[0].role != 'system' %}{{ raise_exception('first a\nsystem message') }}{% endif %}"
    with pytest.raises(UsageError, match="refuses these messages: first a system message"):
        ChatTemplate(source).render(HELLO)


@pytest.mark.parametrize(
    "source",
    [
        "{% for message in messages %}",
        "{{ 1 / 0 }}",
        "{{ nothing.at.all }}",
        "{{ messages.pop() }}",
        "{{ messages[0].update(role='x') }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__init__.__globals__ }}",
        "{% include '/etc/passwd' %}",
        "{{ 'x' * 100000000000 }}",
        "{{ 100000000000 * 'x' }}",
        "{{ [0] * 100000000000 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{% for i in range(10000000) %}x{% endfor %}",
        "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
        "{% set ns = namespace(x='xx') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        GROWING % "ns.x ~ ns.x",
        GROWING % "[ns.x, ns.x] | join",
        GROWING % "ns.x.join(['', ns.x, ''])",
        GROWING % "ns.x.replace('x', ns.x)",
        GROWING % "ns.x | replace('x', ns.x)",
        GROWING % "'%s%s' % (ns.x, ns.x)",
        GROWING % "'{0}{0}'.format(ns.x)",
        "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
        "{{ '%4000000000d' % 1 }}",
        "{{ '%*d' % (4000000000, 1) }}",
        "{{ '{:4000000000}'.format(1) }}",
        "{{ '{:{}}'.format(1, 4000000000) }}",
        "{{ '{a:4000000000}'.format_map({'a': 1}) }}",
        "{{ '%4000000000d' | format(1) }}",
        "{{ 'x'.center(4000000000) }}",
        "{{ 'x'.ljust(4000000000) }}",
        "{{ 'x'.rjust(4000000000, '-') }}",
        "{{ 'x'.zfill(4000000000) }}",
        "{{ '\t'.expandtabs(4000000000) }}",
        "{{ 'x' | center(4000000000) }}",
        "{{ 'x\ny' | indent(4000000000) }}",
        "{{ ('x ' * 10000) | wordwrap(1, wrapstring='y' * 10000) }}",
        "{{ [1] | tojson(indent=4000000000) }}",
        "{{ lipsum(n=100000) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)
def test_broken_and_hostile_templates_give_one_clear_error(source: str) -> None:
    with pytest.raises(ModelFormatError) as caught:
        ChatTemplate(source).render(HELLO)
    message = str(caught.value)
    assert "chat template" in message
    assert "--no-chat" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ 'a' ~ 1 ~ none ~ nothing }}", "a1None"),
        ("{{ ['a', 1] | join(', ') }} {{ '-'.join(['a', 'b']) }}", "a, 1 a-b"),
        ("{{ messages | map(attribute='role') | join(',') }}{{ messages | join('', attribute='role') }}", "useruser"),
        ("{{ messages | join(',', 'role') }}", "user"),
        ("{{ '%s is %d' % ('a', 2) }} {{ '%(a)s' % {'a': 'b'} }} {{ 7 % 4 }}", "a is 2 b 3"),
        ("{{ '{} {a:>3}'.format(1, a='b') }} {{ '{a}'.format_map({'a': 2}) }} {{ '%s' | format('c') }}", "1   b 2 c"),
        ("{{ 'aXa'.replace('X', '-') }} {{ 'aXa' | replace('X', '+') }}", "a-a a+a"),
        ("{{ 'x'.center(3) }}|{{ 'x' | center(3) }}|{{ 'x'.ljust(2) }}|{{ '1'.zfill(2) }}", " x | x |x |01"),
        ("{{ 'a\nb' | indent(2) }}|{{ 'a b' | wordwrap(1) }}|{{ {'a': 1} | tojson(indent=1) }}", None),
    ],
)
def test_what_is_bounded_still_works(source: str, expected: str | None) -> None:
    rendered = ChatTemplate(source).render(HELLO)
    assert rendered == (expected or 'a\n  b|a\nb|{\n "a": 1\n}')


def test_a_long_text_is_no_fault_of_the_template() -> None:
    source = "{{ '[' + messages[0].content + ']' }}{{ '' ~ messages[1].content }}"
    content = "x" * (20 << 20)
    rendered = ChatTemplate(source).render([{"role": "user", "content": content}] * 2)
    assert rendered == f"[{content}]{content}"
