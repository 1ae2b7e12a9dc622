"""The embedded suite: nine task classes, written for this project, in the TOML files beside this module.

A file is a task class, named like it. `max_tokens` is that of all its items. Each item has an `id`, and one of:

- `turns`, a list of texts;
- `instruction`, `language` and `code`: an editing task. The code is the prediction, as the answer repeats most of it;
- `document`, the name of a text file in the folder of the class, `prompt`, which stands behind it, and perhaps `then`,
  a list of more turns.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from paceline.bench.base import Item, Workload

BUILTIN = "builtin"
TASK_CLASSES = (
    "code_editing",
    "code_writing",
    "structured_configuration",
    "summarising",
    "question_answering",
    "translation",
    "reasoning",
    "writing",
    "long_context",
)


def builtin_workload() -> Workload:
    folder = files(__name__)
    return Workload(BUILTIN, tuple(item for name in TASK_CLASSES for item in _read_class(folder, name)))


def _read_class(folder: Traversable, task_class: str) -> list[Item]:
    data = tomllib.loads(folder.joinpath(f"{task_class}.toml").read_text(encoding="utf-8"))
    return [
        Item(
            id=entry["id"],
            task_class=task_class,
            turns=_turns(entry, folder.joinpath(task_class)),
            prediction=entry.get("code"),
            max_tokens=data["max_tokens"],
        )
        for entry in data["items"]
    ]


def _turns(entry: Mapping[str, Any], folder: Traversable) -> tuple[str, ...]:
    if "code" in entry:
        return (f"{entry['instruction']}\n\n```{entry['language']}\n{entry['code']}```",)
    if "document" in entry:
        document = folder.joinpath(entry["document"]).read_text(encoding="utf-8")
        return (f"{document.rstrip()}\n\n{entry['prompt']}", *entry.get("then", ()))
    return tuple(turn.strip() for turn in entry["turns"])
