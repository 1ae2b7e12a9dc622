"""What a reference stands for: a short name, something on this machine, or a model on the Hugging Face hub."""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from paceline.errors import ModelNotFoundError, UsageError
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

_ADDRESS = re.compile(
    rf"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/(?!datasets/|spaces/)(?P<repository>{_NAME}/{_NAME})",
    re.IGNORECASE,
)


def parse_reference(
    reference: str | os.PathLike[str], aliases: Mapping[str, ModelAlias]
) -> ModelAlias | Path | HubReference:
    """An alias wins over a file of the same name, and what exists on this machine over the hub.

    A path that is no string is never an alias, nor on the hub. Raises `ModelNotFoundError` for what is none of them,
    and `UsageError` for what is neither a string nor a path.
    """
    text = os.fspath(reference) if isinstance(reference, str | os.PathLike) else None
    if not isinstance(text, str):
        raise UsageError(f"the model is {quoted(repr(reference))}, expected a string or a path; give {FORMS}")
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
    except RuntimeError as error:
        user = Path(text).parts[0]
        reason = "your home folder is not known" if user == "~" else f"there is no such user, {quoted(user)}"
        raise ModelNotFoundError(f"{quoted(text)} cannot be a model: {reason}; check the path") from error
    except (OSError, ValueError) as error:  # a name too long, a zero byte
        problem = error.strerror if isinstance(error, OSError) else error
        raise ModelNotFoundError(f"{quoted(text)} cannot be a model: {problem}; give {FORMS}") from error


def _looks_like_path(text: str) -> bool:
    """Whether a file of the name was meant, although `folder/model.gguf` could be a repository."""
    is_file_beside = text.count("/") < 2 and text.lower().endswith(".gguf")
    return is_file_beside or text.startswith((".", "~", os.sep))


def _complaint(text: str, aliases: Mapping[str, ModelAlias]) -> str:
    if _looks_like_path(text):
        return f"there is no file {quoted(text)}; check the path"
    address = _ADDRESS.match(text)
    if address is not None:
        return f"{quoted(text)} is an address; give {quoted(address['repository'])} for what is there"
    name = re.split("[:@]", text, maxsplit=1)[0]
    if name in aliases:
        return f"{quoted(text)} names no model: short names take no :QUANT and no @revision; give {name!r}"
    if "/" in text:
        return f"{quoted(text)} neither exists here nor can be on the Hugging Face hub; give {FORMS}"
    close = get_close_matches(text, aliases, n=1)
    return f"unknown model {quoted(text)}; {f'did you mean {close[0]!r}?' if close else _choices(aliases)}"


def _choices(aliases: Mapping[str, ModelAlias]) -> str:
    return f"give {FORMS}; or a short name: {', '.join(aliases)}"
