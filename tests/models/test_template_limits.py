"""Hostile chat templates: whatever one tries, it is stopped by a count and told in one line.

No test here looks at the clock. What bounds the time is the number of steps, which is the same on every machine.
"""

import re

import pytest

from paceline.errors import ModelFormatError
from paceline.models import ChatTemplate, Message

HELLO: list[Message] = [{"role": "user", "content": "Hello"}]
STEPS, BYTES, DEPTH = "takes more than [0-9]+ steps", "makes more than [0-9]+ MiB", "nest deeper than"
SIZE = f"{STEPS}|{BYTES}"


def growing(start: str, step: str) -> str:
    loop = "{% for i in range(999) %}{% set ns.x = STEP %}{% endfor %}".replace("STEP", step)
    return "{% set ns = namespace(x=START) %}".replace("START", start) + loop


def doubled(use: str) -> str:
    """Lists that hold each other: few, and endless where they are walked."""
    grown = "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
    return grown + "{% set x = ns.x %}{{ " + use + " }}"


def stopped(source: str) -> str:
    with pytest.raises(ModelFormatError) as caught:
        ChatTemplate(source).render(HELLO)
    message = str(caught.value)
    assert message.startswith("the chat template ")
    assert message.endswith("; use another chat template, or a plain prompt (--chat-template FILE, --no-chat)")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__init__.__globals__.os }}",
        "{{ raise_exception.__globals__['os'] }}",
        "{{ raise_exception.run.__globals__ }}",
        "{{ namespace.__init__.__globals__.os }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{{ joiner.__init__.__globals__.os }}",
        "{{ lipsum.__globals__.os.popen('id').read() }}",
        "{{ self.__init__.__globals__ }}",
        "{{ self._TemplateReference__context.environment }}",
        "{{ loop.__init__.__globals__ }}",
        "{{ messages | attr('__class__') }}",
        "{{ messages | map('attr', '__class__') | list }}",
        "{{ (messages | map(attribute='__class__') | first).__mro__ }}",
        "{{ (messages | map(attribute='content.__class__.__mro__') | first).x }}",
        "{{ '{0.__class__}'.format(messages) }}",
        "{{ '{0[role]}'.format(messages[0]) }}",
        "{{ '{x.__class__.__mro__}'.format(x=1) }}",
        "{{ '{x!r}'.format(x=1) }}",
        "{{ '%(x.__class__)s' % {'x': 1} }}",
        "{{ ''.format.__self__.x }}",
        "{{ ''.format_map({}) }}",
        "{% macro f() %}{{ caller.__globals__.os }}{% endmacro %}{% call f() %}{% endcall %}",
        "{{ messages.append(1) }}",
        "{{ messages.pop() }}",
        "{{ messages[0].update(role='x') }}",
        "{{ messages[0].clear() }}",
        "{% set messages.x = 1 %}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% from 'os' import path %}",
        "{% extends 'x' %}",
        "{% block x %}{% endblock %}",
        "{% autoescape true %}{% endautoescape %}",
        "{{ [1, 2] | random }}",
        "{{ [1] | pprint }}",
        "{{ '<' | striptags }}",
        "{{ 'a' | urlize }}",
        "{{ 'a b' | wordwrap(1) }}",
        "{{ 'a'.split(budget=1) }}",
        "{{ raise_exception }}",
        "{{ [namespace()] | tojson }}",
    ],
)
def test_there_is_no_way_out(source: str) -> None:
    stopped(source)


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        ("{% for i in range(10**9) %}{% endfor %}", STEPS),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", STEPS),
        ("{{ range(10**18) | sum }}", STEPS),
        ("{{ range(10**12) | list }}", STEPS),
        ("{{ range(10**9) | map('string') | join }}", STEPS),
        ("{{ [1] | select('in', range(10**9) | list) }}", STEPS),
        ("{% for i in range(10**30) %}{% endfor %}", "range is too long"),
        ("{{ 'a' * 10**10 }}", BYTES),
        ("{{ 10**10 * 'a' }}", BYTES),
        ("{{ [0] * 10**10 }}", BYTES),
        ("{{ (0,) * 10**10 }}", BYTES),
        ("{{ 9 ** 9 ** 9 }}", "bits"),
        ("{{ 9 ** (9 ** 9) }}", "powers"),
        ("{{ 10**63 * 10**63 * 10**63 }}", "bits"),
        (growing("9", "ns.x * ns.x"), "bits"),
        (growing("'xx'", "ns.x + ns.x"), BYTES),
        (growing("'xx'", "ns.x ~ ns.x"), BYTES),
        (growing("[1]", "ns.x + ns.x"), BYTES),
        (growing("'xx'", "[ns.x, ns.x] | join"), BYTES),
        (growing("'xx'", "ns.x.join(['', ns.x, ''])"), BYTES),
        (growing("'xx'", "ns.x.replace('x', ns.x)"), BYTES),
        (growing("'xx'", "ns.x | replace('x', ns.x)"), BYTES),
        (growing("'xx'", "'%s%s' % (ns.x, ns.x)"), BYTES),
        (growing("'xx'", "'{0}{0}'.format(ns.x)"), BYTES),
        (growing("'\"'", "ns.x | tojson"), BYTES),
        (growing("'x'", "ns.x.split('y') | string | e"), BYTES),
        (growing("{}", "dict(ns.x, **{i | string: i})"), BYTES),
        (growing("[]", "ns.x + ns.x + [namespace(a=i)]"), BYTES),
        (growing("[]", "[ns.x]") + "{{ ns.x }}", DEPTH),
        ("{% set ns = namespace(x=1) %}{% for i in range(99) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", DEPTH),
        (doubled("x"), STEPS),
        (doubled("x | tojson"), STEPS),
        (doubled("x == [x, x]"), STEPS),
        (doubled("x in [x]"), STEPS),
        (doubled("[x, x] | sort"), STEPS),
        (doubled("[x, x] | unique | list"), STEPS),
        (doubled("[x, x] | max"), STEPS),
        (doubled("x < x"), STEPS),
        ("{% set x = 'x' * 1000000 %}{% for i in range(999) %}{{ x }}{% endfor %}", BYTES),
        ("{% set x %}{% for i in range(9999) %}{{ 'x' * 10000 }}{% endfor %}{% endset %}", BYTES),
        ("{% set x = 'ΐ' * 1000000 %}{% for i in range(999) %}{% set y = x.upper() %}{% endfor %}", SIZE),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", DEPTH),
        ("{% macro f(x=f()) %}{% endmacro %}{{ f() }}", DEPTH),
        ("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(20) }}", STEPS),
        ("{% macro f(g) %}{{ g(g) }}{% endmacro %}{{ f(f) }}", DEPTH),
        ("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", DEPTH),
        ("{% for x in [1, 1] recursive %}{{ loop([1, 1]) if loop.depth < 20 }}{% endfor %}", STEPS),
        (
            "{% macro f() %}{{ caller() ~ caller() ~ caller() }}{% endmacro %}"
            + "{% call f() %}" * 11
            + "{% endcall %}" * 11,
            STEPS,
        ),
        (
            "{% macro f() %}{% if 0 %}" + "{{ a }}" * 5000 + "{{ kwargs }}{% endif %}{% endmacro %}"
            "{% for i in range(9999) %}{{ f(b=1) }}{% endfor %}",
            STEPS,
        ),
        ("{{ '%4000000000d' % 1 }}", "format"),
        ("{{ '%*d' % (4000000000, 1) }}", "format"),
        ("{{ '%.4000000000f' % 1 }}", "format"),
        ("{{ '{:4000000000}'.format(1) }}", "format"),
        ("{{ '{:{}}'.format(1, 4000000000) }}", "format"),
        ("{{ '%4000000000d' | format(1) }}", "format"),
        ("{{ ('{0}' * 100000).format('x' * 100000) }}", SIZE),
        ("{{ ('x\n' * 100) | indent(4000000000) }}", "indent"),
        ("{{ [1] | tojson(indent=4000000000) }}", "indent"),
        ("{{ [1, 2] | tojson(separators=('x' * 99, ':')) }}", "separators"),
        ("{{ [[[1] * 1000] * 1000] | tojson(indent=16) }}", STEPS),
        ("{{ ('\x01' * 10000000) | tojson }}", BYTES),
        ("{{ [1] | batch(10**12, 'x') | list }}", "batch"),
        ("{{ 1.5 | round(10**9) }}", "digits"),
        ("{{ strftime_now('%999999999d') }}", "date"),
        ("{{ strftime_now('%c' * 99) }}", "date"),
        ("{% set t = 'a' * 99999 %}{% for i in range(9999) %}{{ t.rfind('b' ~ t) }}{% endfor %}", SIZE),
        ("{% set t = 'a' * 99999 %}{% set b = 'b' ~ t[9:] %}{{ t.rfind(b) }}", STEPS),
        ("{% set t = 'a' * 2000 %}{% for i in range(9999) %}{{ (t[999:] ~ 'b') in t }}{% endfor %}", STEPS),
        ("{% set t = 'a' * 999999 %}{% for i in range(9999) %}{{ 'b' in t }}{% endfor %}", STEPS),
        ("{{ ('a ' * 5000000).split() | length }}", SIZE),
        ("{{ ('a' * 5000000) | list | length }}", SIZE),
        ("{% set x = range(9999) | map('string') | list %}{{ x | unique | list }}", STEPS),
        ("x" * 100_000, "longer than [0-9]+ characters"),
        ("{{ " + "(" * 9999 + "1" + ")" * 9999 + " }}", "too deeply"),
        ("{{ " + "-" * 9999 + "1 }}", "too deeply"),
        ("{{ 1" + "+ 1" * 9999 + " }}", "too deeply"),
        ("{% if 1 %}" * 900 + "{% endif %}" * 900, "too deeply"),
        ("{{ 1" + "0" * 5000 + " }}", "cannot be parsed"),
    ],
)
def test_nothing_goes_on_for_ever_or_fills_the_memory(source: str, limit: str) -> None:
    assert re.search(limit, stopped(source))


def test_asking_a_long_range_for_a_number_takes_no_time() -> None:
    source = "{% set r = range(10**17) %}{{ 1.5 in r }}{{ 2.0 in r }}{{ 'x' in r }}{{ 10**16 in r }}{{ r | length }}"
    assert ChatTemplate(source).render(HELLO) == "FalseTrueFalseTrue100000000000000000"


def test_steps_are_the_same_every_time_and_grow_with_the_messages() -> None:
    source = "{% for message in messages %}{{ '<' + message.role + '>' + message.content | trim }}{% endfor %}"
    template = ChatTemplate(source)
    one, ten, twenty = (template.num_steps(HELLO * count) for count in (1, 10, 20))
    assert one == ChatTemplate(source).num_steps(HELLO)
    assert 1.9 * ten < twenty < 2.1 * ten
    assert ten < 200


def test_long_conversations_are_no_fault_of_the_template() -> None:
    source = (
        "{% for m in messages %}{{ '[' + m.role + ']' + m.content + '!' }}{{ m.content | trim | length }}"
        "{% if '</think>' in m.content %}{{ m.content.split('</think>')[-1].lstrip('\n') }}{% endif %}{% endfor %}"
    )
    for content in ("x" * (5 << 20), "é" * (5 << 20)):
        rendered = ChatTemplate(source).render([{"role": "user", "content": content}])
        assert rendered == f"[user]{content}!{5 << 20}"
    many = [{"role": "user", "content": f"message {index}"} for index in range(5000)]
    assert ChatTemplate(source).render(many).count("[user]message") == 5000


def test_many_tools_with_deep_schemas_are_no_fault_of_the_template() -> None:
    schema: dict[str, object] = {"type": "string", "description": "x" * 100}
    for level in range(10):
        schema = {"type": "object", "properties": {f"level{level}": schema, "other": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": f"f{index}", "parameters": schema}} for index in range(100)]
    source = (
        "{% macro walk(s) %}{{ s.type }}{% for key, value in (s.properties or {}).items() %}{{ key }}{{ walk(value) }}"
        "{% endfor %}{% endmacro %}{% for t in tools %}{{ t | tojson(indent=4) }}{{ walk(t.function.parameters) }}"
        "{% endfor %}"
    )
    assert ChatTemplate(source).render(HELLO, tools=tools).count("level0") == 200
