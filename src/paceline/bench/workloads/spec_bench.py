"""Spec-Bench jsonl: a question a line, of one turn or more (Xia et al. 2024, github.com/hemingkx/Spec-Bench).

    {"question_id": 81, "category": "writing", "turns": ["Write a post about Hawaii.", "Start each line with A."]}

`question_id` (text or integer) becomes the id, `category` the task class, as it is. `turns`: a list of texts; each is
asked behind the answer to the one before. Other keys, such as MT-Bench's `reference`, are ignored.
"""

from collections.abc import Mapping
from typing import Any

from paceline.bench.base import Item
from paceline.bench.workloads import fields as check
from paceline.bench.workloads.base import Format


class SpecBenchFormat(Format):
    name = "spec-bench"
    looks_like = '{"question_id": ..., "category": ..., "turns": [...]}'

    @classmethod
    def recognises(cls, keys: frozenset[str]) -> bool:
        return "turns" in keys or {"question_id", "category"} <= keys

    def item(self, fields: Mapping[str, Any], name: str) -> Item:  # noqa: ARG002 (every question has its own id)
        turns = check.members(check.required(fields, "turns"), "turns", "texts")
        return Item(
            id=check.identifier(check.required(fields, "question_id"), "question_id"),
            task_class=check.text(check.required(fields, "category"), "category"),
            turns=tuple(check.text(turn, f"turns[{i}]") for i, turn in enumerate(turns)),
        )
