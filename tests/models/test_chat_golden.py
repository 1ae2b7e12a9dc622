"""Chat templates in the manner of real ones: what transformers renders, from messages in whatever form they come."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import PacelineError
from paceline.models import ChatTemplate

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "chat_golden.json").read_text(encoding="utf-8"))
CASES = [(template, name) for template, texts in GOLDEN["rendered"].items() for name in texts]


def with_text_arguments(message: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}}
        for call in message.get("tool_calls", [])
    ]
    return {**message, "tool_calls": calls} if calls else message


def with_parts(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "content": [{"type": "text", "text": message["content"]}]} if message["content"] else message


def without_nulls(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if value is not None}


@pytest.mark.parametrize(("template", "name"), CASES)
@pytest.mark.parametrize("form", [dict, with_text_arguments, with_parts, without_nulls])
def test_renderings_are_those_of_transformers(template: str, name: str, form: Any) -> None:
    source = (FOLDER / "chat" / f"{template}.jinja").read_text(encoding="utf-8")
    chat = ChatTemplate(source, bos_token="<s>", eos_token="</s>", now=lambda: datetime(2026, 3, 9))
    conversation = dict(GOLDEN["conversations"][name])
    messages = [form(message) for message in conversation.pop("messages")]
    expected = GOLDEN["rendered"][template][name]
    try:
        rendered = chat.render(messages, **conversation)
    except PacelineError as error:
        knows_all = "tools" not in str(error) and "enable_thinking" not in str(error)
        assert expected is None or not knows_all  # what a template would ignore is refused
    else:
        assert rendered == expected
