"""How a tokenizer.json turns ordinary text into ids: its own normaliser and pre-tokenizer, then merging or search."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from paceline.errors import ModelFormatError, UnsupportedModelError
from paceline.models.quoting import quoted
from paceline.models.tokenizer.byte_level import byte_level_model
from paceline.models.tokenizer.cache import TokenizerTables
from paceline.models.tokenizer.merging import PairMerger
from paceline.models.tokenizer.sentencepiece import ByteFallback, run_cutter, sentencepiece_model
from paceline.models.tokenizer.tokenizer import TextModel
from paceline.models.tokenizer.unigram import UnigramModel
from paceline.models.tokenizer.vocabulary import Kinds, TokenKind, byte_of, ids_of_kind, ordinary_ids

_KEEPING = frozenset(["Sequence", "Split", "Digits", "Punctuation", "ByteLevel", "Metaspace"])  # pre-tokenizers
_SPACE_DECODERS = frozenset(["Sequence", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"])
_SHRINKING = frozenset(["Sequence", "NFC"])  # normalisers whose effect on a text's length is bounded

Split = Callable[[str, bool], Iterable[str]]


def build_model(tables: TokenizerTables, kinds: Kinds, path: Path, *, swallows_spaces: bool) -> TextModel:
    """Raises `UnsupportedModelError` for what is not known here, and whatever its content makes it raise."""
    settings = tables.settings
    model = settings["model"]
    kind = model.get("type") or ("Unigram" if tables.scores else "BPE")
    odd = [key for key in ("continuing_subword_prefix", "end_of_word_suffix", "dropout") if model.get(key)]
    if kind not in ("BPE", "Unigram") or odd:
        what = f"with {odd[0]}" if odd else f"of the kind {quoted(kind)}"
        raise UnsupportedModelError(f"{path}: a tokenizer {what} is not supported, only BPE and Unigram are")
    ids = ordinary_ids(tables.tokens, kinds)
    ranks: dict[str, float] = dict(zip(tables.merges, range(len(tables.merges)), strict=True))
    split = _splitter(settings, path)
    decoders = {part["type"] for part in _parts(settings.get("decoder"))}
    if kind == "BPE" and "ByteLevel" in decoders:
        normalisers = {part["type"] for part in _parts(settings.get("normalizer"))}
        steps = normalisers | {part["type"] for part in _parts(settings.get("pre_tokenizer"))}
        if "ByteLevel" not in steps or "Metaspace" in steps:
            raise UnsupportedModelError(f"{path}: a tokenizer that decodes bytes but encodes none is not supported")
        return byte_level_model(
            ids,
            ranks,
            split,
            keeps_words=bool(model.get("ignore_merges")),
            is_composed="NFC" in normalisers,
            has_bound=not swallows_spaces and normalisers <= _SHRINKING and _keeps_text(settings),
        )
    if not decoders <= _SPACE_DECODERS or not decoders:
        raise UnsupportedModelError(f"{path}: decoder {quoted(', '.join(sorted(decoders)))} is not supported")
    fallback = _fallback(tables, kinds)
    if kind == "Unigram":
        encode: Any = UnigramModel(
            ids, {token: tables.scores[i] for token, i in ids.items() if i < len(tables.scores)}, fallback
        )
    else:
        encode = PairMerger(ids, ranks, " ", fallback, keeps_words=bool(model.get("ignore_merges")))
    cut = run_cutter(ids)

    def split_runs(text: str, is_first: bool) -> Iterator[str]:
        for word in split(text, is_first):
            yield from cut(word)

    return sentencepiece_model(
        ids,
        split_runs,
        encode,
        fallback,
        has_space_prefix=_strips_space(settings["decoder"]),
        has_bound=not swallows_spaces and _only_marks_spaces(settings) and _keeps_text(settings),
    )


def _parts(component: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """A component and, of a sequence, its members."""
    if component is None:
        return
    yield component
    for key in ("normalizers", "pretokenizers", "decoders"):
        for member in component.get(key, ()):
            yield from _parts(member)


def _splitter(settings: Mapping[str, Any], path: Path) -> Split:
    first = _library_splitter(settings, path)
    pre_tokenizer = settings.get("pre_tokenizer")
    if not any(part.get("prepend_scheme") == "first" for part in _parts(pre_tokenizer)):
        return lambda text, _: first(text)
    text = json.dumps(pre_tokenizer)
    later = json.loads(text, object_hook=lambda part: _without_prefix(part))
    others = _library_splitter({**settings, "pre_tokenizer": later}, path)
    return lambda text, is_first: (first if is_first else others)(text)


def _without_prefix(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "prepend_scheme": "never"} if part.get("prepend_scheme") == "first" else part


def _library_splitter(settings: Mapping[str, Any], path: Path) -> Callable[[str], list[str]]:
    """The file's normaliser and pre-tokenizer, as the library reads them."""
    import tokenizers  # here, not above: a help text must not wait for it

    empty = {"type": "BPE", "vocab": {}, "merges": []}
    kept = {key: settings.get(key) for key in ("normalizer", "pre_tokenizer")}
    try:
        parts = tokenizers.Tokenizer.from_str(
            json.dumps({"version": "1.0", "added_tokens": [], "model": empty, **kept})
        )
    except Exception as error:  # the library raises nothing narrower
        raise ModelFormatError(f"{path}: the tokenizers library cannot read tokenizer.json: {quoted(error)}") from error
    normalise = parts.normalizer.normalize_str if parts.normalizer is not None else str
    if parts.pre_tokenizer is None:
        return lambda text: [normalise(text)]
    cut = parts.pre_tokenizer.pre_tokenize_str
    return lambda text: [word for word, _ in cut(normalise(text))]


def _keeps_text(settings: Mapping[str, Any]) -> bool:
    parts = list(_parts(settings.get("pre_tokenizer")))
    return all(part["type"] in _KEEPING and part.get("behavior") != "Removed" for part in parts)


def _fallback(tables: TokenizerTables, kinds: Kinds) -> ByteFallback:
    bytes_of = {byte_of(tables.tokens[i]): i for i in ids_of_kind(kinds, TokenKind.BYTE)}
    unknown = next(iter(ids_of_kind(kinds, TokenKind.UNKNOWN)), None)
    return ByteFallback({byte: i for byte, i in bytes_of.items() if byte is not None}, unknown)


def _only_marks_spaces(settings: Mapping[str, Any]) -> bool:
    """True where no normaliser takes a character away."""
    return all(
        part["type"] in ("Sequence", "Prepend") or (part["type"] == "Replace" and part["pattern"] == {"String": " "})
        for part in _parts(settings.get("normalizer"))
    )


def _strips_space(decoder: Mapping[str, Any]) -> bool:
    return any(
        (part["type"] == "Strip" and part.get("start", 0) > 0)
        or (part["type"] == "Metaspace" and part.get("prepend_scheme", "always") != "never")
        for part in _parts(decoder)
    )
