"""The names of the files that one model is split into: `name-00001-of-00003.gguf`, or `.safetensors`."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

_PART = re.compile(
    r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<ending>\.gguf|\.safetensors)", re.DOTALL | re.IGNORECASE
)


class Part(NamedTuple):
    """What the name of a part says; `number` counts from 1 to `total`."""

    stem: str
    number: int
    total: int
    ending: str


def parse_part(name: str) -> Part | None:
    """The part that a file's name or path says it is; None for a whole file."""
    match = _PART.fullmatch(name)
    part = Part(match["stem"], int(match["number"]), int(match["count"]), match["ending"]) if match else None
    return part if part is not None and 1 <= part.number <= part.total else None


def part_names(name: str) -> list[str]:
    """The names of all parts that belong together with this one; of a whole file, its own alone."""
    part = parse_part(name)
    if part is None:
        return [name]
    return [f"{part.stem}-{number:05}-of-{part.total:05}{part.ending}" for number in range(1, part.total + 1)]


def model_files(names: Iterable[str]) -> list[str]:
    """The GGUF files among the names that hold models, sorted; of a split one its first part's, there or not.

    Projectors of images and importance matrices have the same ending, and are none.
    """
    firsts = {part_names(name)[0] for name in names if name.lower().endswith(".gguf")}
    return sorted(name for name in firsts if not _is_companion(PurePosixPath(name).name.lower()))


def _is_companion(name: str) -> bool:
    return "mmproj" in name or "imatrix" in name
