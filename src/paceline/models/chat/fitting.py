"""How one chat template wants what can be said in several ways; found out by rendering small conversations.

Templates differ in whether they take a content as text or as a list of parts, a missing content as None or as an empty
text, and arguments of tool calls as a mapping or as JSON text. The wrong form comes out as nothing, as an error, or as
Python's way of writing a list, so trying tells.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from paceline.errors import PacelineError
from paceline.models.chat.messages import parsed_arguments
from paceline.models.chat.sandbox.text import own

_MARK = "paceline7probe"
_OWN_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function", "ipython", "model"})
_SEPARATOR = "\n"  # between text parts, for templates that know texts only


@dataclass(frozen=True, slots=True)
class Fit:
    """What the template takes."""

    takes_text: bool = True
    takes_parts: bool = False
    takes_no_content: bool = True
    takes_mappings: bool = True


def find_fit(render: Callable[[list[dict[str, Any]]], str]) -> Fit:
    """`render` is given conversations that no user wrote. Where no form works, the fit is the usual one, and a real
    conversation will bring the template's own words about what is wrong."""

    def shows(messages: list[dict[str, Any]], unwanted: tuple[str, ...]) -> bool:
        try:
            text = render(messages)
        except PacelineError:
            return False
        return _MARK in text and not any(each in text for each in unwanted)

    parts = [{"type": "text", "text": _MARK}]
    takes_parts = shows([{"role": "user", "content": parts}], ("{'type'", '"type"'))
    takes_text = shows([{"role": "user", "content": _MARK}], ()) or not takes_parts
    content = "Hi" if takes_text else [{"type": "text", "text": "Hi"}]
    for has_none, has_mapping in product((True, False), (True, False)):
        arguments: Any = {"key": _MARK} if has_mapping else json.dumps({"key": _MARK})
        call = {"id": "abcdef123", "type": "function", "function": {"name": "find", "arguments": arguments}}
        answer = {"role": "assistant", "content": None if has_none else "", "tool_calls": [call]}
        if shows([{"role": "user", "content": content}, answer], ("{'key'", "None", '{\\"key')):
            return Fit(takes_text, takes_parts, has_none, has_mapping)
    return Fit(takes_text, takes_parts)


def fitted(messages: list[dict[str, Any]], fit: Fit) -> list[dict[str, Any]]:
    """The messages as the template takes them. Roles that templates know become the template's own text: some write
    special tokens with them."""
    return [_fitted(message, fit, f"message {index}") for index, message in enumerate(messages)]


def _fitted(message: dict[str, Any], fit: Fit, where: str) -> dict[str, Any]:
    role = message["role"]
    result = {
        **message,
        "role": own(role) if role in _OWN_ROLES else role,
        "content": _content(message["content"], fit),
    }
    if "tool_calls" in message:
        calls = message["tool_calls"]
        result["tool_calls"] = [_call(call, fit, f"{where}: tool call {index}") for index, call in enumerate(calls)]
    return result


def _content(content: Any, fit: Fit) -> Any:
    if content is None and not fit.takes_no_content:
        content = ""
    if isinstance(content, str) and not fit.takes_text:
        return [{"type": "text", "text": content}]
    if isinstance(content, list) and not fit.takes_parts:
        return _SEPARATOR.join(part["text"] for part in content)
    return content


def _call(call: dict[str, Any], fit: Fit, where: str) -> dict[str, Any]:
    function = call["function"]
    arguments = function["arguments"]
    if fit.takes_mappings:
        arguments = parsed_arguments(arguments, where)
    elif not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {**call, "type": "function", "function": {**function, "arguments": arguments}}
