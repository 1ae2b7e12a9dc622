"""Plain jsonl: a prompt or a conversation a line.

    {"prompt": "Name three rivers."}
    {"messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Name three rivers."}]}

Exactly one of `prompt` and `messages`. A prompt is what a user says, the one turn. Of messages, whose roles are system,
user and assistant, the last user's is the one turn and all before it is history; what follows it, a recorded answer, is
not used. Optional: `id` (text or integer; else the line's name), `task_class` (text; else "default"), `prediction`
(text that the answer may repeat), `max_tokens` (integer of at least 1). Other keys are ignored, but a key that is
almost one of these is a problem, and so is `arrival`, which belongs to a trace.
"""

from collections.abc import Mapping
from typing import Any

from paceline.bench.base import Item, Message
from paceline.bench.workloads import fields as check
from paceline.bench.workloads.base import DEFAULT_CLASS, Format, RecordError

KEYS = ("prompt", "messages", "id", "task_class", "prediction", "max_tokens")


class PlainFormat(Format):
    name = "plain"
    looks_like = '{"prompt": ...} or {"messages": [...]}'

    @classmethod
    def recognises(cls, keys: frozenset[str]) -> bool:
        return bool(keys & {"prompt", "messages"}) and "arrival" not in keys

    def item(self, fields: Mapping[str, Any], name: str) -> Item:
        if "arrival" in fields:
            raise RecordError("arrival belongs to a recorded trace, where every record has one; this file is none")
        return plain_item(fields, name, arrival=None)


def plain_item(fields: Mapping[str, Any], name: str, *, arrival: float | None) -> Item:
    """What the plain format and a trace have in common."""
    check.check_spelling(fields, (*KEYS, "arrival"))
    history, turn = _conversation(fields)
    return Item(
        id=name if fields.get("id") is None else check.identifier(fields["id"], "id"),
        task_class=check.optional_text(fields, "task_class") or DEFAULT_CLASS,
        turns=(turn,),
        history=history,
        prediction=check.optional_text(fields, "prediction"),
        max_tokens=check.optional_count(fields, "max_tokens"),
        arrival=arrival,
    )


def _conversation(fields: Mapping[str, Any]) -> tuple[tuple[Message, ...], str]:
    """History and turn."""
    given = [key for key in ("prompt", "messages") if fields.get(key) is not None]
    if len(given) != 1:
        found = "has both prompt and messages" if given else f"has neither; its keys are {check.shown_keys(fields)}"
        raise RecordError(f"expected exactly one of prompt and messages; the record {found}")
    if given == ["prompt"]:
        return (), check.text(fields["prompt"], "prompt")
    messages = check.messages(fields["messages"], "messages")
    for i in reversed(range(len(messages))):
        if messages[i].role == "user":
            return messages[:i], messages[i].content
    raise RecordError("messages holds none of the role user; the last of those is what is asked")
