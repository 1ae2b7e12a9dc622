"""Chat templates put together at random from what Jinja has, rendered in the sandbox."""

import json
import re
from random import Random
from typing import Any

import atheris
from harness import attempt, fuzz

from paceline.models import ChatTemplate

_TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}
_CALL = {"id": "abcdef123", "type": "function", "function": {"name": "find", "arguments": {"a": [1, 2.5, None]}}}
_CONVERSATIONS: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": "Hi"}],
    [{"role": "system", "content": "Be brief.\n\tNo {{ x }}"}, {"role": "user", "content": "ẞß\u0130 <|im_end|>" * 20}],
    [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": ""}]}],
    [{"role": "user", "content": "Q"}, {"role": "assistant", "content": None, "tool_calls": [_CALL]}],
]
_NAMES = [
    "messages",
    "tools",
    "m",
    "x",
    "y",
    "ns",
    "loop",
    "bos_token",
    "add_generation_prompt",
    "undefined",
    "f",
    "self",
]
_ATTRIBUTES = """
content  role  tool_calls  function  arguments  items  keys  values  get  x  index  index0  first
last  length  previtem  nextitem  cycle  depth  revindex  changed  split  strip  lstrip  rstrip
replace  upper  lower  title  startswith  endswith  join  find  rfind  format  count  splitlines
partition  encode  __class__  append  insert  pop  sort  update  zfill  center  isdigit  name
""".split()  # noqa: SIM905 (longer, and harder to read, as a list)
_FILTERS = """
length  trim  upper  lower  join('-')  join(messages)  tojson  tojson(indent=2)  tojson(indent=-1)
list  first  last  reverse  sort  unique  batch(2)  batch(0)  slice(3)  slice(0)  default('d')
replace('a','bb')  replace('','zz')  int  int(base=36)  int(base=99)  float  round  round(400)
round(-400)  abs  string  title  capitalize  map('upper')  map(attribute='role')
map(attribute='a.b.0')  selectattr('role')  selectattr('role','equalto','user')  rejectattr('x')
select  reject('odd')  groupby('role')  indent  indent(3,true)  indent(99999999)  truncate(5)
truncate(-1)  wordwrap(3)  wordwrap(0)  center(99)  center(99999999999)  format(1,2)  dictsort
items  max  min  sum  sum(attribute='x')  urlencode  escape  e  safe  striptags  xmlattr  pprint
wordcount  filesizeformat  random  attr('x')  count  d('')  forceescape
""".split()  # noqa: SIM905 (longer, and harder to read, as a list)
_TESTS = """
defined  undefined  none  string  mapping  iterable  sequence  number  integer  float  boolean  odd
even  true  false  callable  equalto(1)  in('abc')  in(messages)  divisibleby(0)  divisibleby(3)
sameas(none)  eq(x)  gt(1)  lt('a')  lower  upper
""".split()  # noqa: SIM905 (longer, and harder to read, as a list)
_LITERALS = """
0  1  -1  2  3  7  1.5  1e308  -0.0  1e-320  99999999999999999999  true  false  none  ''  'a'
'a\\nb'  '%s%d'  '{}{0}'  '<|im_end|>'  []  {}  ()  [1,2,3]  (1,)  {'a':1}  {1:2}
{'role':'user','content':'c'}  '\\x00'  '\\u2028'  'ß'  range(3)  range(999999999)  range(0,10,0)
range(5,-5,-2)  namespace(x=1)  namespace()  dict(a=1)  cycler(1,2)  joiner()  lipsum()
raise_exception('a\\nb')  strftime_now('%Y')  strftime_now('%Q%\\x00')  strftime_now('%9999999Y')
""".split()  # noqa: SIM905 (longer, and harder to read, as a list)
_OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "and", "or", "in", "not in"]


_TARGETS = ["m", "x", "k, v", "ns.x", "(m, x), y", "messages"]
_PIECES = ["\n", " text ", "<|im_start|>", "{# c #}", "{{", "%}", "{% raw %}{{{% endraw %}", "\0", "ß"]
_TAGS = ["include", "import", "extends", "do", "block", "autoescape", "trans"]
# What stands in brackets is drawn in turn: statement, expression, name and so on.
_STATEMENTS = """
{{ <E> }}
<P>
{% for <G> in <E> %}<S><S>{% else %}e{% endfor %}
{% for m in <E> recursive %}<S>{{ loop(m) }}{% endfor %}
{%- for m in messages if <E> -%}<S>{% break %}{% endfor %}
{%- for m in messages -%}{% if <E> %}{% continue %}{% endif %}<S>{% endfor %}
{% if <E> %}<S><S>{% elif <E> %}b{% else %}<S>{% endif %}
{% set <G> = <E> %}<S>
{% set x %}<S>{% endset %}<S>
{% macro f(x, y=<E>) %}<S>{% endmacro %}{{ f(<E>) }}
{% call(m) f(<E>) %}<S>{% endcall %}
{% filter <F> %}<S>{% endfilter %}
{% with x = <E> %}<S>{% endwith %}
{% generation %}<S>{% endgeneration %}
{% <T> <E> %}<S>
""".strip().splitlines()
_EXPRESSIONS = """
<N>
<L>
(<E> <O> <E>)
<E> | <F>
<E> is <I>
<E>.<A>
<E>.<A>(<E>)
<E>[<E>]
<E>[<E>:<L>:<L>]
(<E> if <E> else <L>)
[<E>, <E>]
{<E>: <E>}
<N>(<E>, x=<E>)
not <E>
-<E>
""".strip().splitlines()
_CHOICES = {
    **{"S": _STATEMENTS, "E": _EXPRESSIONS, "P": _PIECES, "G": _TARGETS, "T": _TAGS},
    **{"N": _NAMES, "L": _LITERALS, "F": _FILTERS, "I": _TESTS, "A": _ATTRIBUTES, "O": _OPERATORS},
}
_MAX_DEPTH = 6


def _drawn(provider: atheris.FuzzedDataProvider, kind: str, depth: int = 0) -> str:
    """A template, or a part of one. Where the bytes of the input end, everything becomes the first choice."""
    choices = _CHOICES[kind]
    most = 0 if depth > _MAX_DEPTH else len(choices) - 1
    form = choices[provider.ConsumeIntInRange(0, most)]
    return re.sub("<([A-Z])>", lambda match: _drawn(provider, match[1], depth + 1), form)


def test_template(content: bytes) -> None:
    provider = atheris.FuzzedDataProvider(content)
    if provider.ConsumeBool():
        source = "".join(_drawn(provider, "S") for _ in range(provider.ConsumeIntInRange(1, 4)))
    else:
        source = provider.ConsumeUnicodeNoSurrogates(provider.ConsumeIntInRange(0, 400))
    messages = _CONVERSATIONS[provider.ConsumeIntInRange(0, len(_CONVERSATIONS) - 1)]
    tools = [_TOOL] if provider.ConsumeBool() else None
    before = json.dumps(messages)
    template = ChatTemplate(source, bos_token="<s>", eos_token="</s>")
    attempt(lambda: template.render(messages, tools=tools))
    if json.dumps(messages) != before:
        raise AssertionError("the template has changed the caller's messages")


if __name__ == "__main__":
    seeds = [Random(seed).randbytes(400) for seed in range(64)]
    seeds += [b"\0{% for m in messages %}{{ m.content | trim }}{% endfor %}", b"\0{{ messages[0]['role'] }}"]
    fuzz(test_template, seeds)
