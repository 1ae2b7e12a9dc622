"""The tables of tokenizer.json files, kept once they are read: parsing a large one takes seconds, an entry much less.

An entry is named by its source's hash and begins with its own, so that a damaged one is noticed and made anew. Nothing
here is needed: where no cache can be written, the source is parsed each time.
"""

import hashlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import FetchError, ModelFormatError
from paceline.models.quoting import quoted
from paceline.models.references import cache_folder

_FORMAT = 1  # to be raised with any change of what an entry holds
_MIN_BYTES = 1 << 20  # smaller files are parsed as fast as an entry is read
_MAX_TOKENS = 1 << 24


@dataclass(frozen=True, slots=True)
class TokenizerTables:
    """A tokenizer.json, its tables apart and flat: nested ones are what makes parsing slow."""

    settings: dict[str, Any]
    """All of it but the model's vocabulary and merges."""
    tokens: list[str]
    """By id; empty for an id that has no token."""
    scores: list[float]
    """Of a unigram model, by id; else empty."""
    merges: list[str]
    """Of a BPE model, "left right"; else empty."""


def read_tables(path: Path) -> TokenizerTables:
    """Raises `ModelFormatError` naming the file, and `OSError` where it cannot be read."""
    source = path.read_bytes()
    entry = _entry(source) if len(source) >= _MIN_BYTES else None
    if entry is not None and (tables := _load(entry)) is not None:
        return tables
    tables = _parse(source, path)
    if entry is not None:
        _store(tables, entry)
    return tables


def _entry(source: bytes) -> Path | None:
    try:
        folder = cache_folder() / "tokenizers"
    except FetchError:  # whoever needs the folder will say what is wrong with it
        return None
    return folder / f"{hashlib.sha256(source).hexdigest()}.{_FORMAT}.json"


def _load(entry: Path) -> TokenizerTables | None:
    """None where there is no sound entry."""
    try:
        digest, _, content = entry.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest.decode(errors="replace") != hashlib.sha256(content).hexdigest():
        return None
    head, _, rest = content.partition(b"\n")
    fields = json.loads(head)
    strings = rest.decode(errors="surrogatepass").split(fields["separator"])
    count = fields["num_tokens"]
    return TokenizerTables(fields["settings"], strings[:count], fields["scores"], strings[count:])


def _store(tables: TokenizerTables, entry: Path) -> None:
    every = " ".join(tables.tokens)  # with the space, which merges hold
    separator = next(character for character in map(chr, range(0x110000)) if character not in every)
    fields = {
        "settings": tables.settings,
        "scores": tables.scores,
        "num_tokens": len(tables.tokens),
        "separator": separator,
    }
    strings = separator.join([*tables.tokens, *tables.merges])
    content = json.dumps(fields).encode() + b"\n" + strings.encode(errors="surrogatepass")
    temporary = ""
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=entry.parent, delete=False) as file:
            temporary = file.name
            file.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        Path(temporary).replace(entry)  # whole or not at all, whoever else is writing it
    except OSError:  # full or read-only: the next start parses again
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _parse(source: bytes, path: Path) -> TokenizerTables:
    try:
        settings = json.loads(source)
        model = settings.pop("model")
        vocabulary, merges = model.pop("vocab"), model.pop("merges", [])
        settings["model"] = model
        pairs = (
            vocabulary.items() if isinstance(vocabulary, dict) else ((item[0], i) for i, item in enumerate(vocabulary))
        )
        tokens = _by_id([*pairs, *((token["content"], token["id"]) for token in settings["added_tokens"])])
        known = set(tokens)
        joined = [_merge(merge) for merge in merges]
        for merge in joined:
            if merge.replace(" ", "") not in known:
                raise ValueError(f"the merge {merge!r} does not give a token")
        scores = [] if isinstance(vocabulary, dict) else [float(item[1]) for item in vocabulary]
        return TokenizerTables(settings, tokens, scores, joined)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFormatError(f"{path} is not a sound tokenizer.json ({quoted(reason)}); fetch it again") from error


def _by_id(pairs: list[tuple[str, int]]) -> list[str]:
    size = 1 + max((token_id for _, token_id in pairs), default=-1)
    if size > _MAX_TOKENS or any(token_id < 0 for _, token_id in pairs):
        raise ValueError(f"token ids should be 0 to {_MAX_TOKENS - 1}")
    tokens = [""] * size
    for token, token_id in pairs:
        if not isinstance(token, str):
            raise TypeError(f"token {token_id} is not a string")
        tokens[token_id] = token
    return tokens


def _merge(merge: str | list[str]) -> str:
    text = merge if isinstance(merge, str) else " ".join(merge)
    if text.count(" ") != 1:
        raise ValueError(f"the merge {text!r} is not of two tokens without spaces")
    return text
