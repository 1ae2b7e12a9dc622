"""Where chat templates lie: in a GGUF header, in a Hugging Face folder, or in a file that the user names.

Gives sources by name, not compiled. "default" is what models call the one for ordinary conversations, "tool_use" the
one for conversations with tools.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from paceline.errors import ModelFormatError, UsageError
from paceline.models.gguf.file import GGUFFile
from paceline.models.quoting import quoted

DEFAULT = "default"
_TOOL_USE = "tool_use"
_KEY = "tokenizer.chat_template"
_MAX_JSON = 64 << 20  # bytes; configurations list a model's added tokens too
MAX_SOURCE = 1 << 16  # characters; the longest real ones have some twenty thousand, and reading them takes time too


class Choice(NamedTuple):
    """The template for conversations without tools, and the one for those with, where it is another."""

    source: str
    tool_source: str | None


def choose(sources: Mapping[str, str], name: str | Path | None, where: Path) -> Choice | None:
    """The template called `name`, else the one in the file `name`; for None the model's own, or None if it has none.

    Raises `UsageError` where there is neither such a template nor such a file, and `ModelFormatError` where the model
    has several and calls none the default.
    """
    if name is not None:
        return Choice(_named(sources, name, where), None)
    if not sources:
        return None
    if DEFAULT in sources:
        return Choice(sources[DEFAULT], sources.get(_TOOL_USE))
    if len(sources) == 1:
        return Choice(next(iter(sources.values())), None)
    raise ModelFormatError(
        f"{where}: none of its chat templates ({_list(sources)}) is the default; use --chat-template"
    )


def _named(sources: Mapping[str, str], name: str | Path, where: Path) -> str:
    if isinstance(name, str) and name in sources:
        return sources[name]
    if not isinstance(name, str | Path):
        raise UsageError(f"chat_template is {name!r:.80}; expected the name of a template, the path of a file, or None")
    known = f"has the chat templates {_list(sources)}" if sources else "has no chat templates of its own"
    problem = _problem(name)
    if problem:
        raise UsageError(f"chat template {quoted(name)} {problem}, and {where} {known}; give a file, or a name")
    return _read_template(Path(name))


def _problem(name: str | Path) -> str:
    """Why there is no template to read at a path; empty where there is."""
    try:
        path = Path(name)
        if path.is_file():
            return ""
        if not str(name) or not path.exists():
            return "names no file"
        return "is a folder" if path.is_dir() else "is no ordinary file"
    except (OSError, ValueError):  # too long for a name: somebody gave the template itself
        return "names no file"


def from_gguf(file: GGUFFile) -> dict[str, str]:
    """`tokenizer.chat_template` is the default; each name in `tokenizer.chat_templates` has a key of its own behind
    it."""
    metadata = file.metadata
    sources = {DEFAULT: metadata.string(_KEY)} if _KEY in metadata else {}
    named = [key.removeprefix(f"{_KEY}.") for key in metadata if key.startswith(f"{_KEY}.")]
    listed = metadata.strings("tokenizer.chat_templates") if "tokenizer.chat_templates" in metadata else []
    missing = sorted(set(listed) - set(named) - {DEFAULT})
    if missing:
        raise ModelFormatError(
            f"{file.path}: the chat template {quoted(missing[0])} is listed but missing; convert again"
        )
    return {**{name: metadata.string(f"{_KEY}.{name}") for name in named}, **sources}


def from_folder(folder: Path) -> dict[str, str]:
    """From `tokenizer_config.json`, `chat_template.json`, `additional_chat_templates/NAME.jinja` and
    `chat_template.jinja`; where two give the same name, the later of these counts."""
    sources: dict[str, str] = {}
    for file in (folder / "tokenizer_config.json", folder / "chat_template.json"):
        if file.is_file():
            sources |= _from_json(file)
    extra = folder / "additional_chat_templates"
    if extra.is_dir():
        sources |= {file.stem: _read_template(file) for file in sorted(extra.glob("*.jinja"))}
    if (folder / "chat_template.jinja").is_file():
        sources[DEFAULT] = _read_template(folder / "chat_template.jinja")
    return sources


def _from_json(file: Path) -> dict[str, str]:
    try:
        content: Any = json.loads(_read(file, _MAX_JSON))
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{file} is not valid JSON: {quoted(error)}; fetch it again") from error
    value = content.get("chat_template") if isinstance(content, dict) else None
    if value is None:
        return {}
    if isinstance(value, str):
        return {DEFAULT: value}
    if isinstance(value, list) and all(map(_is_named_template, value)):
        return {entry["name"]: entry["template"] for entry in value}
    raise ModelFormatError(
        f"{file}: its chat_template is neither a text nor a list of names and templates; fetch it again"
    )


def _is_named_template(entry: object) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("name", "template"))


def _read_template(file: Path) -> str:
    return _read(file, 4 * MAX_SOURCE)  # whether it is short enough is asked when it is compiled


def _read(file: Path, max_bytes: int) -> str:
    try:
        with file.open("rb") as stream:
            data = stream.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise ModelFormatError(f"{file} has more than {max_bytes} bytes, too many for what it should be")
        return data.decode()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{file} is not valid UTF-8; convert it or fetch it again") from error


def _list(names: Mapping[str, str]) -> str:
    return ", ".join(quoted(name, 40) for name in sorted(names)[:8])
