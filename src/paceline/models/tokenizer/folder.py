"""Tokenizers from Hugging Face folders: tokenizer.json, and the settings in the files beside it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from paceline.errors import ModelFormatError, ModelNotFoundError, UnsupportedModelError
from paceline.models.quoting import quoted
from paceline.models.tokenizer.cache import TokenizerTables, read_tables
from paceline.models.tokenizer.pipeline import build_model
from paceline.models.tokenizer.tokenizer import TextModel
from paceline.models.tokenizer.vocabulary import Kinds, TokenKind, Vocabulary, byte_of, stop_ids

_OLD_FILES = ("tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
_MAX_HOLES = 1 << 16  # ids without a token between two that have one
_NAMED_SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")


@dataclass(frozen=True, slots=True)
class FolderTokenizer:
    """The parts of a `Tokenizer`."""

    vocabulary: Vocabulary
    model: TextModel
    left_strip: frozenset[int]
    right_strip: frozenset[int]


def read_folder(path: Path) -> FolderTokenizer:
    """Raises `ModelNotFoundError`, `ModelFormatError` or `UnsupportedModelError`."""
    file = path / "tokenizer.json"
    if not file.exists():
        raise _missing(path)
    try:
        tables = read_tables(file)
    except OSError as error:
        raise ModelNotFoundError(f"cannot read {file}: {error.strerror}; make it readable") from error
    config = {**_settings(path / "special_tokens_map.json"), **_settings(path / "tokenizer_config.json")}
    try:
        return _build(path, _with_added(tables, config), config)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFormatError(
            f"{path}: tokenizer.json or the settings beside it are not sound ({quoted(reason)}); fetch them again"
        ) from error


def _build(path: Path, tables: TokenizerTables, config: Mapping[str, Any]) -> FolderTokenizer:
    kinds = _kinds(tables, config)
    added = tables.settings["added_tokens"]
    for token in added:
        if token.get("single_word"):
            name = quoted(token["content"])
            raise UnsupportedModelError(f"{path}: token {name} is for single words only, which is not supported")
    left, right = (frozenset(token["id"] for token in added if token.get(side)) for side in ("lstrip", "rstrip"))
    model = build_model(tables, kinds, path, swallows_spaces=bool(left or right))
    return FolderTokenizer(_vocabulary(path, tables, kinds, config), model, left, right)


def _with_added(tables: TokenizerTables, config: Mapping[str, Any]) -> TokenizerTables:
    """The tables with the tokens that only tokenizer_config.json names."""
    known = tables.settings["added_tokens"]
    names = {token["content"] for token in known}
    found = [{**token, "id": int(key)} for key, token in config.get("added_tokens_decoder", {}).items()]
    found = [token for token in found if token["content"] not in names]
    if not found:
        return tables
    tokens = list(tables.tokens)
    for token in sorted(found, key=lambda token: token["id"]):
        if not 0 <= token["id"] < len(tokens) + _MAX_HOLES:
            raise ValueError(f"the added token {token['content']!r} has the id {token['id']}")
        tokens += [""] * (token["id"] + 1 - len(tokens))
        tokens[token["id"]] = token["content"]
    return replace(tables, settings={**tables.settings, "added_tokens": [*known, *found]}, tokens=tokens)


def _kinds(tables: TokenizerTables, config: Mapping[str, Any]) -> Kinds:
    """Tokens that look like part of a format are, whatever the file says: some models declare the names of their turns
    as ordinary added tokens, and a user who typed one would write a turn."""
    kinds = np.full(len(tables.tokens), TokenKind.NORMAL, np.int8)
    if "" in tables.tokens:
        kinds[[i for i, token in enumerate(tables.tokens) if not token]] = TokenKind.UNUSED
    model = tables.settings["model"]
    if model.get("byte_fallback"):
        kinds[[i for i, token in enumerate(tables.tokens) if token[:3] == "<0x" and byte_of(token) is not None]] = (
            TokenKind.BYTE
        )
    for token in tables.settings["added_tokens"]:
        is_control = token.get("special") or _looks_special(token["content"])
        kinds[token["id"]] = TokenKind.CONTROL if is_control else TokenKind.USER_DEFINED
    for name in _names(config):
        if name in tables.tokens:
            kinds[tables.tokens.index(name)] = TokenKind.CONTROL
    unknown_id = unknown_token(tables)
    if unknown_id is not None:
        kinds[unknown_id] = TokenKind.UNKNOWN
    return kinds


def unknown_token(tables: TokenizerTables) -> int | None:
    """The id of the model's unknown token."""
    model = tables.settings["model"]
    if model.get("unk_token") is not None:
        return _find(tables, model["unk_token"])
    unknown_id: int | None = model.get("unk_id")
    if unknown_id is not None and (type(unknown_id) is not int or not 0 <= unknown_id < len(tables.tokens)):
        raise ValueError(f"unk_id {unknown_id!r} is no token's id")
    return unknown_id


def _find(tables: TokenizerTables, name: str) -> int:
    if name not in tables.tokens:
        raise ValueError(f"there is no token {name!r}")
    return tables.tokens.index(name)


def _looks_special(name: str) -> bool:
    return name.startswith(("<|", "<｜")) and name.endswith(("|>", "｜>"))


def _names(config: Mapping[str, Any]) -> Iterator[str]:
    for value in [*map(config.get, _NAMED_SPECIAL), *(config.get("additional_special_tokens") or [])]:
        if value is not None:
            yield _content(value)


def _content(token: Any) -> str:
    name = token["content"] if isinstance(token, dict) else token
    if not isinstance(name, str):
        raise TypeError(f"{token!r} is not the name of a token")
    return name


def _vocabulary(path: Path, tables: TokenizerTables, kinds: Kinds, config: Mapping[str, Any]) -> Vocabulary:
    before, after = _template(path, tables.settings.get("post_processor"))
    named = {
        "bos": before if before is not None else config.get("bos_token"),
        "eos": after if after is not None else config.get("eos_token"),
    }
    ids = {key: _find(tables, _content(name)) for key, name in named.items() if name is not None}
    adds = {}
    for key, found in (("bos", before), ("eos", after)):
        setting = config.get(f"add_{key}_token")  # rewrites the file's own template where it is given
        adds[key] = found is not None if setting is None else bool(setting)
        if adds[key] and key not in ids:
            raise ModelFormatError(f"{path}: add_{key}_token is set, but there is no {key}_token; fetch it again")
    eos = config.get("eos_token")
    known = [*_generation_stops(path, len(kinds)), _find(tables, _content(eos)) if eos is not None else None]
    return Vocabulary(
        tables.tokens,
        kinds,
        bos_id=ids.get("bos"),
        eos_id=ids.get("eos"),
        add_bos=adds["bos"],
        add_eos=adds["eos"],
        stop_ids=stop_ids(tables.tokens, kinds, known),
    )


def _template(path: Path, processor: Mapping[str, Any] | None) -> tuple[str | None, str | None]:
    """The tokens that the file puts before and behind every text."""
    if processor is None or processor["type"] == "ByteLevel":
        return None, None
    if processor["type"] == "Sequence":
        found = [_template(path, member) for member in processor["processors"]]
        return next((pair for pair in found if pair != (None, None)), (None, None))
    if processor["type"] != "TemplateProcessing":
        raise UnsupportedModelError(f"{path}: post-processor {quoted(processor['type'])} is not supported")
    items = [item["SpecialToken"]["id"] if "SpecialToken" in item else None for item in processor["single"]]
    if items.count(None) != 1 or len(items) > 3 or (len(items) == 3 and items[1] is not None):
        raise UnsupportedModelError(f"{path}: more than one token before or behind a text is not supported")
    place = items.index(None)
    return (items[0] if place else None), (items[-1] if place < len(items) - 1 else None)


def _generation_stops(path: Path, size: int) -> list[int]:
    """Ids past the vocabulary are left out: nothing can produce them."""
    settings = _settings(path / "generation_config.json") or _settings(path / "config.json")
    found = settings.get("eos_token_id")
    ids = found if isinstance(found, list) else [] if found is None else [found]
    if not all(isinstance(i, int) for i in ids):
        raise ModelFormatError(f"{path}: eos_token_id should be token ids, not {quoted(found)}; fetch it again")
    return [i for i in ids if 0 <= i < size]


def _settings(path: Path) -> dict[str, Any]:
    """The content of a JSON file that may be missing."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ModelNotFoundError(f"cannot read {path}: {error.strerror}; make it readable") from error
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{path} is not JSON: {quoted(error)}; fetch it again") from error
    if not isinstance(content, dict):
        raise ModelFormatError(f"{path} should hold settings by name; fetch it again")
    return content


def _missing(path: Path) -> ModelNotFoundError | UnsupportedModelError:
    for name in _OLD_FILES:
        if (path / name).exists():
            return UnsupportedModelError(
                f"{path} has {name} but no tokenizer.json; make one with transformers: "
                f"AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
            )
    return ModelNotFoundError(f"{path} has no tokenizer.json; fetch it too, or give a .gguf file")
