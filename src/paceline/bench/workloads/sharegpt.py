"""ShareGPT JSON: an array of recorded conversations; one conversation a line is read as well.

    [{"id": "a", "conversations": [{"from": "human", "value": "Name three rivers."},
                                   {"from": "gpt", "value": "Nile, Ob, Po."}]}]

What "human" or "user" says becomes the turns. What the recorded model said between them ("gpt", "chatgpt",
"assistant", "bing", "bard") is not used: each turn follows the answer that the measured model gave. Whatever stands
before the first human entry is history: "system" entries, and an answer that the cut of a long conversation begins
with. A "system" entry behind it is a problem, and so is a conversation in which no human speaks. `id` is optional. The
task class is "chat". Other keys are ignored.
"""

from collections.abc import Mapping
from typing import Any

from paceline.bench.base import Item, Message
from paceline.bench.workloads import fields as check
from paceline.bench.workloads.base import Format, RecordError

TASK_CLASS = "chat"
ROLES = {
    "system": "system",
    "human": "user",
    "user": "user",
    **dict.fromkeys(("gpt", "chatgpt", "assistant", "bing", "bard"), "assistant"),
}


class ShareGPTFormat(Format):
    name = "sharegpt"
    looks_like = '[{"id": ..., "conversations": [{"from": "human", "value": ...}, ...]}]'

    @classmethod
    def recognises(cls, keys: frozenset[str]) -> bool:
        return "conversations" in keys

    def item(self, fields: Mapping[str, Any], name: str) -> Item:
        entries = check.members(check.required(fields, "conversations"), "conversations", "entries")
        history: list[Message] = []
        turns: list[str] = []
        for i, entry in enumerate(entries):
            role, value = _entry(entry, f"conversations[{i}]")
            if role == "user":
                turns.append(check.text(value, f"conversations[{i}].value"))
            elif not turns:
                history.append(Message(role, check.text(value, f"conversations[{i}].value")))
            elif role == "system":
                raise RecordError(f"conversations[{i}] is from system, behind a human; expected it before the first")
        if not turns:
            raise RecordError("conversations holds nothing from human or user, and so nothing to ask")
        identity = name if fields.get("id") is None else check.identifier(fields["id"], "id")
        return Item(id=identity, task_class=TASK_CLASS, turns=tuple(turns), history=tuple(history))


def _entry(entry: object, name: str) -> tuple[str, object]:
    """Role and value."""
    if not isinstance(entry, dict):
        raise RecordError(f'{name} is {check.shown(entry)}; expected {{"from": ..., "value": ...}}')
    speaker = entry.get("from")
    if not isinstance(speaker, str) or speaker not in ROLES:
        raise RecordError(f"{name}.from is {check.shown(speaker)}; expected one of {', '.join(ROLES)}")
    return ROLES[speaker], entry.get("value")
