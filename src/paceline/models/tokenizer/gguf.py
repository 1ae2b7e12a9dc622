"""Tokenizers from the metadata of GGUF files.

The header holds the tables as they are needed, and reading it takes less than reading any cache of them would.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.errors import ModelFormatError, UnsupportedModelError
from paceline.models.gguf.file import GGUFFile
from paceline.models.quoting import quoted
from paceline.models.tokenizer.byte_level import byte_level_model
from paceline.models.tokenizer.pretokenizers import PreTokenizer, byte_level_splitter, find_pre_tokenizer
from paceline.models.tokenizer.sentencepiece import ByteFallback, scored_model
from paceline.models.tokenizer.tokenizer import TextModel
from paceline.models.tokenizer.unigram import unigram_model
from paceline.models.tokenizer.vocabulary import (
    Kinds,
    TokenKind,
    Vocabulary,
    byte_of,
    ids_of_kind,
    ordinary_ids,
    stop_ids,
)

_KEY = "tokenizer.ggml."
_STOP_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


def read_tokenizer(file: GGUFFile) -> tuple[Vocabulary, TextModel]:
    """Raises `UnsupportedModelError` or `ModelFormatError`; warns with `PacelineWarning` where it has to guess."""
    kind = file.metadata.string(_KEY + "model")
    tables = _Tables.read(file)
    match kind:
        case "gpt2":
            name = file.metadata.string(_KEY + "pre") if _KEY + "pre" in file.metadata else None
            pre = find_pre_tokenizer(name, file.path)
            return _vocabulary(file, tables, pre.add_bos, False), _byte_level(file, tables, pre)
        case "llama":
            return _vocabulary(file, tables, True, False), _scored(file, tables)
        case "t5":
            return _vocabulary(file, tables, False, True), _unigram(file, tables)
    raise UnsupportedModelError(
        f"{file.path}: tokenizer {quoted(kind)} is not supported, only 'gpt2' (byte-level BPE), 'llama' "
        "(SentencePiece BPE) and 't5' (unigram) are; choose another model"
    )


@dataclass(frozen=True, slots=True)
class _Tables:
    tokens: list[str]
    kinds: Kinds
    ids: Mapping[str, int]
    """The tokens that ordinary text can become."""
    ordinary: list[int]
    """Their ids, ascending."""

    @classmethod
    def read(cls, file: GGUFFile) -> "_Tables":
        metadata = file.metadata
        tokens = metadata.strings(_KEY + "tokens")
        key = _KEY + "token_type"
        types = metadata.integers(key) if key in metadata else [int(TokenKind.NORMAL)] * len(tokens)
        if len(types) != len(tokens):
            raise _malformed(file, f"{len(types)} token types for {len(tokens)} tokens")
        kinds = np.clip(types, 0, 127).astype(np.int8)
        ordinary = ids_of_kind(kinds, TokenKind.NORMAL, TokenKind.USER_DEFINED)
        ids = ordinary_ids(tokens, kinds)
        if len(ids) != len(ordinary):
            duplicate = next(tokens[i] for i in ordinary if ids.get(tokens[i]) != i)
            raise _malformed(file, f"token {quoted(duplicate)} is in the vocabulary twice")
        return cls(tokens, kinds, ids, ordinary)


def _vocabulary(file: GGUFFile, tables: _Tables, adds_bos: bool, adds_eos: bool) -> Vocabulary:
    """`adds_bos`, `adds_eos`: what holds where the file has such a token and does not say."""
    size = len(tables.tokens)
    named = {key: _token_id(file, key, size) for key in ("bos_token_id", *_STOP_KEYS)}
    adds = {"bos": adds_bos, "eos": adds_eos}
    for name in adds:
        key = f"{_KEY}add_{name}_token"
        has_token = named[f"{name}_token_id"] is not None
        adds[name] = file.metadata.flag(key, adds[name] and has_token)
        if adds[name] and not has_token:
            raise _malformed(file, f"add_{name}_token is set, but there is no {name}_token_id")
    return Vocabulary(
        tables.tokens,
        tables.kinds,
        bos_id=named["bos_token_id"],
        eos_id=named["eos_token_id"],
        add_bos=adds["bos"],
        add_eos=adds["eos"],
        stop_ids=stop_ids(tables.tokens, tables.kinds, [named[key] for key in _STOP_KEYS]),
    )


def _byte_level(file: GGUFFile, tables: _Tables, pre: PreTokenizer) -> TextModel:
    key = _KEY + "merges"
    merges = file.metadata.strings(key) if key in file.metadata else []
    _check_merges(file, merges, tables)
    ranks = dict(zip(merges, range(len(merges)), strict=True))
    return byte_level_model(
        tables.ids, ranks, byte_level_splitter(pre), keeps_words=pre.keeps_words, is_composed=pre.is_composed
    )


def _check_merges(file: GGUFFile, merges: list[str], tables: _Tables) -> None:
    if "".join(merges).count(" ") == len(merges):
        joined = [merge.replace(" ", "", 1) for merge in merges]
        if all(map(tables.ids.__contains__, joined)):
            return
    wrong = next(merge for merge in merges if merge.count(" ") != 1 or merge.replace(" ", "") not in tables.ids)
    raise _malformed(
        file, f"{_KEY}merges do not fit the vocabulary: {quoted(wrong)} does not join two tokens to a third"
    )


def _scored(file: GGUFFile, tables: _Tables) -> TextModel:
    scores = _scores(file, tables)
    is_sorted = bool((np.diff(scores[tables.kinds[tables.ordinary] == TokenKind.NORMAL]) < 0).all())
    # Then ids rank as scores do, and need no second table. User-defined tokens are cut out before anything is merged.
    ranks = tables.ids if is_sorted else dict(zip(tables.ids, (-scores).tolist(), strict=True))
    return scored_model(
        tables.ids,
        ranks,
        _fallback(file, tables),
        has_space_prefix=file.metadata.flag(_KEY + "add_space_prefix", True),
    )


def _unigram(file: GGUFFile, tables: _Tables) -> TextModel:
    scores = dict(zip(tables.ids, _scores(file, tables).tolist(), strict=True))
    for token, token_id in tables.ids.items():
        if tables.kinds[token_id] == TokenKind.USER_DEFINED:
            scores[token] = 0.0
    return unigram_model(
        tables.ids,
        scores,
        _fallback(file, tables),
        charsmap=_charsmap(file),
        has_space_prefix=file.metadata.flag(_KEY + "add_space_prefix", True),
        merges_spaces=file.metadata.flag(_KEY + "remove_extra_whitespaces", False),
    )


def _scores(file: GGUFFile, tables: _Tables) -> NDArray[np.float32]:
    """Of the ordinary tokens, in their order."""
    scores = file.metadata.get(_KEY + "scores")
    if not isinstance(scores, np.ndarray) or scores.dtype.kind not in "iuf":
        raise _malformed(file, f"{_KEY}scores should be an array of numbers")
    if len(scores) != len(tables.tokens):
        raise _malformed(file, f"{len(scores)} scores for {len(tables.tokens)} tokens")
    ordinary: NDArray[np.float32] = scores[tables.ordinary].astype(np.float32)
    if np.isnan(ordinary).any():
        raise _malformed(file, f"{_KEY}scores are not all numbers")
    return ordinary


def _fallback(file: GGUFFile, tables: _Tables) -> ByteFallback:
    byte_ids = {}
    for index in ids_of_kind(tables.kinds, TokenKind.BYTE):
        byte = byte_of(tables.tokens[index])
        if byte is None:
            raise _malformed(file, f"the byte token {quoted(tables.tokens[index])} is not of the form '<0xHH>'")
        byte_ids[byte] = index
    return ByteFallback(byte_ids, _token_id(file, "unknown_token_id", len(tables.tokens)))


def _charsmap(file: GGUFFile) -> bytes:
    value = file.metadata.get(_KEY + "precompiled_charsmap")
    if value is None:
        return b""
    if not isinstance(value, np.ndarray) or value.dtype.itemsize != 1:
        raise _malformed(file, f"{_KEY}precompiled_charsmap should be an array of bytes")
    return value.tobytes()


def _token_id(file: GGUFFile, key: str, vocab_size: int) -> int | None:
    full_key = _KEY + key
    if full_key not in file.metadata:
        return None
    token_id = file.metadata.integer(full_key)
    if not 0 <= token_id < vocab_size:
        raise _malformed(file, f"{full_key} is {token_id}, outside of the {vocab_size} tokens")
    return token_id


def _malformed(file: GGUFFile, what: str) -> ModelFormatError:
    return ModelFormatError(f"{file.path}: {what}; fetch or convert it again, or choose another model")
