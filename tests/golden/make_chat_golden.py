"""Writes chat_golden.json: conversations as transformers renders them with the templates in `chat/`.

    python tests/golden/make_chat_golden.py

needs transformers 5 and Jinja2. The templates are written in the manner of those that models come with, and use what
those use. A rendering is null where the template refuses the conversation or fails.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

import transformers
from transformers.utils import chat_template_utils

HERE = Path(__file__).parent
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": 'Look up a place\'s "weather".',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": " Which one, e.g. Zürich "},
                "days": {"type": "array", "items": {"type": "integer"}},
                "unit": {"type": ["string", "null"], "enum": ["C", "F"]},
                "more": {"type": "object", "additionalProperties": {"type": "number"}},
            },
            "required": ["city"],
        },
    },
}
NOW = {
    "type": "function",
    "function": {"name": "now", "description": "The time.", "parameters": {"type": "object", "properties": {}}},
}


def user(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: str | None, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"id": f"call{index:05}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for index, (name, arguments) in enumerate(calls)
        ]
    return message


def result(content: str, index: int = 0) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call{index:05}", "content": content}


SYSTEM = {"role": "system", "content": " Be brief.\n"}
ASKED = [user("Weather in Zürich?"), assistant(None, ("search", {"city": "Zürich", "days": [1, 2], "unit": None}))]
TWICE = [user("Both?"), assistant(None, ("search", {"city": "Rome"}), ("now", {}))]
CONVERSATIONS: dict[str, dict[str, Any]] = {
    "one": {"messages": [user("Hello")]},
    "no_prompt": {"messages": [user("Hello"), assistant("Hi!")], "add_generation_prompt": False},
    "system": {"messages": [SYSTEM, user("  What is 1 < 2 & 'x'?\n")]},
    "turns": {"messages": [SYSTEM, user("a"), assistant(" b \n"), user("c\n\n\td"), assistant("ü"), user("")]},
    "empty_system": {"messages": [{"role": "system", "content": ""}, user("e")]},
    "two_users": {"messages": [user("a"), user("b")]},
    "code": {"messages": [user("```python\nprint('{{ x }}', \"{% if %}\")\n```")]},
    "thoughts": {"messages": [user("a"), assistant("<think>\nhm\n</think>\n\nb"), user("c")]},
    "scripts": {"messages": [user("日本語 עברית 👩‍👩‍👧 ﬁ İ"), assistant("ǅ"), user("ß")]},
    "no_thinking": {"messages": [user("a")], "variables": {"enable_thinking": False}},
    "tools": {"messages": [SYSTEM, user("Weather?")], "tools": [SEARCH, NOW]},
    "tools_alone": {"messages": [user("Weather?")], "tools": [NOW]},
    "call": {"messages": ASKED, "tools": [SEARCH], "add_generation_prompt": False},
    "result": {"messages": [*ASKED, result('{"degrees": 21}')], "tools": [SEARCH]},
    "answered": {"messages": [*ASKED, result("21"), assistant("21 °C."), user("Thanks")], "tools": [SEARCH, NOW]},
    "two_calls": {"messages": [*TWICE, result("15"), result("noon", 1)], "tools": [SEARCH, NOW]},
    "call_with_text": {"messages": [user("x"), assistant("Let me see.", ("now", {})), result("noon")], "tools": [NOW]},
}


def forms(template: str, messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """What transformers' users write by hand for one template and another."""
    if template != "parts_only":  # which writes nothing for texts, and fails for none
        yield messages
        yield [{**each, **with_text_arguments(each)} for each in messages]
    yield [{**each, "content": [{"type": "text", "text": each["content"] or ""}]} for each in messages]
    yield [{**each, "content": each["content"] or ""} for each in messages]


def with_text_arguments(message: dict[str, Any]) -> dict[str, Any]:
    functions = [call["function"] for call in message.get("tool_calls", [])]
    texts = [{**each, "arguments": json.dumps(each["arguments"], ensure_ascii=False)} for each in functions]
    calls = zip(message.get("tool_calls", []), texts, strict=True)
    return {"tool_calls": [{**call, "function": text} for call, text in calls]} if texts else {}


def rendered(template: str, source: str, conversation: dict[str, Any]) -> str | None:
    given = {"add_generation_prompt": True, **conversation}
    messages, tools, variables = given.pop("messages"), given.pop("tools", None), given.pop("variables", {})
    for form in forms(template, messages):
        try:
            [text], _ = chat_template_utils.render_jinja_template(
                [form], tools=tools, chat_template=source, **given, **variables, **TOKENS
            )
            return str(text)
        except Exception:  # noqa: BLE001 (a template fails in any way)
            continue
    return None


def main() -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # noqa: ARG003 (the signature is datetime's)
            return datetime(2026, 3, 9)

    templates = {path.stem: path.read_text(encoding="utf-8") for path in sorted((HERE / "chat").glob("*.jinja"))}
    with mock.patch.object(chat_template_utils, "datetime", Clock):
        texts = {
            template: {name: rendered(template, source, conversation) for name, conversation in CONVERSATIONS.items()}
            for template, source in templates.items()
        }
    golden = {"transformers": transformers.__version__, "conversations": CONVERSATIONS, "rendered": texts}
    path = HERE / "chat_golden.json"
    path.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
