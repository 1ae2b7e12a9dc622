"""What a reference stands for: a short name, something on this machine, or a model on the Hugging Face hub."""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from paceline.errors import ModelNotFoundError
from paceline.models.quoting import quoted
from paceline.models.references.base import HubReference, ModelAlias

FORMS = (
    "the path of a .gguf file or of a folder, or a model on the Hugging Face hub: "
    "org/repo, org/repo:QUANT or org/repo/file.gguf, each with @revision if wanted"
)
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"  # of an organisation or a repository
_HUB = re.compile(
    rf"(?P<repository>{_NAME}/{_NAME})"
    r"(?::(?P<quantization>[A-Za-z0-9][\w.-]*)|/(?P<file>[^@\\\x00-\x1f]+\.gguf))?(?:@(?P<revision>[^\s@\0]+))?",
    re.IGNORECASE,
)


def parse_reference(reference: str | Path, aliases: Mapping[str, ModelAlias]) -> ModelAlias | Path | HubReference:
    """An alias wins over a file of the same name, and what exists on this machine over the hub.

    A `Path` is never an alias, nor on the hub. Raises `ModelNotFoundError` for what is none of them.
    """
    text = str(reference)
    if not text:
        raise ModelNotFoundError(f"the model's name is empty; {_choices(aliases)}")
    if isinstance(reference, str) and reference in aliases:
        return aliases[reference]
    path = _existing_path(text)
    if path is not None:
        return path
    match = _HUB.fullmatch(text) if isinstance(reference, str) and not _looks_like_path(text) else None
    if match is not None:
        return HubReference(**match.groupdict())
    raise ModelNotFoundError(_complaint(text, aliases))


def _existing_path(text: str) -> Path | None:
    try:
        path = Path(text).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, an unknown ~user, a zero byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelNotFoundError(f"{quoted(text)} cannot be a model: {reason}; give {FORMS}") from error


def _looks_like_path(text: str) -> bool:
    """Whether a file of the name was meant, although `folder/model.gguf` could be a repository."""
    is_file_beside = text.count("/") < 2 and text.lower().endswith(".gguf")
    return is_file_beside or text.startswith((".", "~", os.sep))


def _complaint(text: str, aliases: Mapping[str, ModelAlias]) -> str:
    if _looks_like_path(text):
        return f"there is no file {quoted(text)}; check the path"
    if "/" in text:
        return f"{quoted(text)} neither exists here nor can be on the Hugging Face hub; give {FORMS}"
    close = get_close_matches(text, aliases, n=1)
    return f"unknown model {quoted(text)}; {f'did you mean {close[0]!r}?' if close else _choices(aliases)}"


def _choices(aliases: Mapping[str, ModelAlias]) -> str:
    return f"give {FORMS}; or a short name: {', '.join(aliases)}"
