"""What a caller may hand in as prompts: told apart, checked, and brought to one form."""

from collections.abc import Iterable, Mapping, Sequence, Set
from operator import index
from typing import Any, NamedTuple, TypeGuard

from paceline.errors import UsageError
from paceline.models import Message, Tool

Prompt = str | Sequence[int]
Conversation = Sequence[Message]


class ChatOptions(NamedTuple):
    """What goes into the chat template beside the messages."""

    tools: Sequence[Tool] | None = None
    variables: Mapping[str, Any] | None = None


def as_prompts(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """A text or a sequence of token ids is one prompt; anything else must be an iterable of such prompts."""
    if isinstance(prompts, str):
        return [prompts]
    members = _members(prompts, "a text, a sequence of token ids, or a list of those")
    if members and all(_is_integer(member) for member in members):
        return [members]
    return members


def as_conversations(messages: Conversation | Sequence[Conversation]) -> list[Conversation]:
    """A sequence of messages is one conversation; anything else must be an iterable of conversations."""
    members = _members(messages, "a list of messages, or a list of such lists")
    if not members:
        raise UsageError("there are no messages; give at least one")
    return [members] if isinstance(members[0], Mapping) else members


def as_token_ids(prompt: Sequence[int]) -> list[int]:
    """Token ids as plain integers. Raises UsageError for anything else."""
    members = _members(prompt, "a text or a sequence of token ids")
    for member in members:
        if not _is_integer(member):
            raise UsageError(f"the prompt holds {member!r}; expected token ids")
    return [index(member) for member in members]


def is_conversation(value: object) -> TypeGuard[Conversation]:
    return isinstance(value, Sequence) and not isinstance(value, str) and bool(value) and isinstance(value[0], Mapping)


def _members(value: Any, expected: str) -> list[Any]:
    if isinstance(value, bytes | bytearray | Mapping | Set | str) or not isinstance(value, Iterable):
        raise UsageError(f"got {value!r:.100}; expected {expected}")
    try:
        return list(value)
    except TypeError:  # an array without dimensions calls itself iterable
        raise UsageError(f"got {value!r:.100}; expected {expected}") from None


def _is_integer(value: object) -> bool:
    """True for integers of any library; bool is none."""
    if isinstance(value, bool):
        return False
    try:
        index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True
