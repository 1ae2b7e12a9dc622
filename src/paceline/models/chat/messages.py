"""What callers hand in as a conversation: messages, tools, template variables; checked, and copied as plain values."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.errors import UsageError
from paceline.models.quoting import quoted

Message = Mapping[str, Any]
"""`role` and `content`, and what goes with them in the OpenAI form: `tool_calls`, `tool_call_id`, `name`,
`reasoning_content`. A content is a text, a list of `{"type": "text", "text": …}`, or None beside tool calls."""

Tool = Mapping[str, Any]
"""`{"type": "function", "function": {"name": …, "description": …, "parameters": …}}`"""

_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_KEYS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_RESERVED = frozenset(
    {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "unk_token", "pad_token"}
)
_MAX_DEPTH = 48
_MAX_BITS = 256


def check_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Copies without keys that are None, but for `content`. Raises `UsageError` naming the first message that is
    malformed."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise UsageError(f"the conversation is a {type(messages).__name__}, expected a list of messages")
    if not messages:
        raise UsageError("the conversation has no messages; give at least one")
    return [_checked(message, f"message {index}") for index, message in enumerate(messages)]


def check_tools(tools: Sequence[Tool] | None) -> list[dict[str, Any]] | None:
    """Copies, or None where there are none."""
    if tools is None:
        return None
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Sequence):
        raise UsageError(f"tools is a {type(tools).__name__}, expected a list of mappings")
    checked = [_plain(tool, f"tool {index}") for index, tool in enumerate(tools)]
    for index, tool in enumerate(checked):
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if not isinstance(function, dict) or not _is_filled(function.get("name")):
            raise UsageError(f"tool {index} is not of the form {_TOOL_FORM}")
    return checked or None


def check_variables(variables: Mapping[str, Any] | None) -> dict[str, Any]:
    """Copies of the variables that a caller adds for a template."""
    if variables is None:
        return {}
    if not isinstance(variables, Mapping):
        raise UsageError(f"chat_template_kwargs is a {type(variables).__name__}, expected a mapping")
    for name in variables:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
            raise UsageError(f"chat_template_kwargs cannot set {quoted(name)}; it is no name, or taken")
    return {str(name): _plain(value, f"chat_template_kwargs[{name!r}]") for name, value in variables.items()}


def size(value: Any) -> tuple[int, int]:
    """Characters and values in a plain value, all the way down."""
    if isinstance(value, str):
        return len(value), 1
    members = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    sizes = [size(member) for member in members]
    return sum(characters for characters, _ in sizes), 1 + sum(values for _, values in sizes)


def parsed_arguments(arguments: str | dict[str, Any], where: str) -> dict[str, Any]:
    """A tool call's arguments as a mapping. Raises `UsageError` for a text that is no JSON object."""
    if isinstance(arguments, dict):
        return arguments
    try:
        found = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UsageError(f"{where} has arguments that are no JSON object: {quoted(arguments)}")
    mapping: dict[str, Any] = _plain(found, where)
    return mapping


_TOOL_FORM = '{"type": "function", "function": {"name": …, …}}'
_CALL_FORM = '{"type": "function", "function": {"name": …, "arguments": …}}'


def _checked(message: object, where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise UsageError(f"{where} is a {type(message).__name__}, expected a mapping with 'role' and 'content'")
    role = message.get("role")
    if not isinstance(role, str):
        raise UsageError(f"{where} has no 'role' that is a string")
    if not _ROLE.fullmatch(role):  # a role becomes part of the format: it must not be able to end a turn
        raise UsageError(f"{where} has the role {quoted(role)}, expected a plain word such as 'user'")
    given = {str(key): value for key, value in message.items() if value is not None}
    unknown = sorted(given.keys() - _KEYS)
    if unknown:
        known = ", ".join(sorted(_KEYS - {"role"}))
        raise UsageError(f"{where} has the unknown key {quoted(unknown[0])}, expected only role, {known}")
    copy = {key: _plain(value, where) for key, value in given.items()}
    for key in ("name", "tool_call_id", "reasoning_content"):
        if not isinstance(copy.get(key, ""), str):
            raise UsageError(f"{where} has a {key!r} that is no string")
    calls = copy.get("tool_calls")
    if calls == []:
        del copy["tool_calls"]
    elif calls is not None:
        _check_calls(calls, role, where)
    copy["content"] = _content(copy.get("content"), bool(calls), where)
    return copy


def _content(content: Any, has_calls: bool, where: str) -> str | list[Any] | None:
    if isinstance(content, str) or (content is None and has_calls):
        return content
    if not isinstance(content, list):
        raise UsageError(f"{where} has no 'content' that is a string or a list of text parts")
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "text":
            shown = "without a type" if kind is None else f"of type {quoted(kind)}"
            raise UsageError(f"{where} has a part {shown}; only parts of type 'text' can be read")
        if not isinstance(part.get("text"), str) or part.keys() != {"type", "text"}:
            raise UsageError(f'{where} has a part that is not of the form {{"type": "text", "text": …}}')
    return content


def _check_calls(calls: Any, role: str, where: str) -> None:
    if role != "assistant":
        raise UsageError(f"{where} has tool calls, which only the role 'assistant' can have")
    if not isinstance(calls, list):
        raise UsageError(f"{where} has 'tool_calls' that are no list")
    for index, call in enumerate(calls):
        function = (
            call.get("function") if isinstance(call, dict) and call.get("type", "function") == "function" else None
        )
        if (
            not isinstance(function, dict)
            or not _is_filled(function.get("name"))
            or not isinstance(function.get("arguments"), str | dict)
            or not isinstance(call.get("id", ""), str)
        ):
            raise UsageError(f"{where}: tool call {index} is not of the form {_CALL_FORM}")


def _is_filled(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _plain(value: Any, where: str, depth: int = 0) -> Any:
    """A copy of exactly the types that JSON has. Raises `UsageError` for anything else."""
    if depth > _MAX_DEPTH:
        raise UsageError(f"{where} nests deeper than {_MAX_DEPTH} lists and mappings")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) and int(value).bit_length() <= _MAX_BITS:
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): _plain(member, where, depth + 1) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member, where, depth + 1) for member in value]
    raise UsageError(f"{where} holds {quoted(repr(value))}, a {type(value).__name__} that JSON has not")
