"""Byte-level BPE tokenisation from a GGUF's own vocabulary and merges, on the `tokenizers` library.

Text is ordinary unless the caller says otherwise: `<|im_end|>` typed by a user becomes the tokens of its characters,
never the end-of-turn token. Knows nothing of chat templates.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Self

from paceline.errors import ModelFormatError, UnsupportedModelError, UsageError
from paceline.models.gguf.file import GGUFFile
from paceline.models.quoting import quoted

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4  # GGUF token types
_STOP_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
# fmt: off
_STOP_TOKENS = frozenset([  # end a turn in one format or another, whatever the file's keys say
    "<|endoftext|>", "<|im_end|>", "<|end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|return|>", "<|call|>",
    "<end_of_turn>", "<end_of_utterance>", "<EOT>", "_<EOT>",
])
# fmt: on

Pieces = Sequence[str | int]
"""Ordinary text, and the ids of the special tokens between."""


class Tokenizer:
    """Text to token ids and back. Immutable, and safe to share between threads."""

    def __init__(
        self,
        tokens: list[str],
        token_types: list[int],
        encode_ordinary: Callable[[str], list[int]],
        *,
        bos_id: int | None = None,
        eos_id: int | None = None,
        add_bos: bool = False,
        stop_ids: Iterable[int] = (),
    ) -> None:
        """`encode_ordinary` turns text without any special or user-defined token into ids."""
        self.vocab_size = len(tokens)
        self.bos_id = bos_id
        self.eos_id = eos_id
        self.add_bos = add_bos
        self.stop_ids = frozenset(stop_ids)
        special = {tokens[i]: i for i, kind in enumerate(token_types) if kind in (_UNKNOWN, _CONTROL) and tokens[i]}
        defined = {tokens[i]: i for i, kind in enumerate(token_types) if kind == _USER_DEFINED and tokens[i]}
        self.special_tokens: Mapping[str, int] = MappingProxyType(special)
        self._tokens = tokens
        self._encode_ordinary = encode_ordinary
        self._special_ids = frozenset(special.values())
        self._literal = {**defined, **special}
        self._literal_ids = frozenset(self._literal.values())
        self._special_pattern = _any_of(special)
        self._defined_pattern = _any_of(defined)
        self._byte_of = {character: byte for byte, character in enumerate(_byte_alphabet())}

    @classmethod
    def from_gguf(cls, file: GGUFFile) -> Self:
        """Build from the file's metadata.

        Raises `UnsupportedModelError` for another kind of tokenizer and `ModelFormatError` for contradictory tables.
        """
        metadata = file.metadata
        _check_kind(file)
        tokens = metadata.strings("tokenizer.ggml.tokens")
        has_types = "tokenizer.ggml.token_type" in metadata
        token_types = metadata.integers("tokenizer.ggml.token_type") if has_types else [_NORMAL] * len(tokens)
        if len(token_types) != len(tokens):
            raise _malformed(file, f"{len(token_types)} token types for {len(tokens)} tokens")
        bos_id = _token_id(file, "bos_token_id", len(tokens))
        add_bos = metadata.flag("tokenizer.ggml.add_bos_token", False)
        if add_bos and bos_id is None:
            raise _malformed(file, "add_bos_token is set, but there is no bos_token_id")
        stop_ids = {i for key in _STOP_KEYS if (i := _token_id(file, key, len(tokens))) is not None}
        return cls(
            tokens,
            token_types,
            _build_bpe(file, tokens),
            bos_id=bos_id,
            eos_id=_token_id(file, "eos_token_id", len(tokens)),
            add_bos=add_bos,
            stop_ids=stop_ids
            | {i for i, kind in enumerate(token_types) if kind != _NORMAL and tokens[i] in _STOP_TOKENS},
        )

    def encode(self, text: str, *, allow_special: bool = False) -> list[int]:
        """The ids of a whole prompt; the model's BOS token is put first where its file asks for one.

        With `allow_special`, names of special tokens in the text become those tokens: for trusted text only. Bytes for
        which the vocabulary has no token are left out, as every tokenizer over such a file does: SmolLM2's lacks a few.
        Raises `UsageError` for text with lone surrogates, which no UTF-8 can hold.
        """
        return self.encode_pieces(self.split_special(text) if allow_special else [text])

    def split_special(self, text: str) -> Pieces:
        """Cut text at the names of special tokens, the longest first where several begin at one place."""
        return list(_split(text, self._special_pattern, self.special_tokens))

    def encode_pieces(self, pieces: Pieces) -> list[int]:
        """Like `encode`, where the caller has decided already which parts are special tokens."""
        ids: list[int] = []
        for piece in pieces:
            if isinstance(piece, int):
                ids.append(piece)
            else:
                ids += self._encode_text(piece)
        if self.add_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            ids.insert(0, self.bos_id)  # once: a template may have written it already
        return ids

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Text of the ids. Bytes that are no valid UTF-8 become U+FFFD; special tokens are left out by default."""
        skipped = self._special_ids if skip_special else frozenset()
        return b"".join(self.token_bytes(i) for i in ids if i not in skipped).decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for: its name for special tokens; perhaps part of a character for others."""
        if not 0 <= token_id < self.vocab_size:
            raise UsageError(f"token id {token_id} is outside of the vocabulary, 0 to {self.vocab_size - 1}")
        token = self._tokens[token_id]
        if token_id in self._literal_ids:
            return token.encode()
        try:
            return bytes([self._byte_of[character] for character in token])
        except KeyError:  # not of the byte alphabet: the token is its own text
            return token.encode()

    def is_special(self, token_id: int) -> bool:
        """True for control tokens, which are part of the format and not of the text."""
        return token_id in self._special_ids

    def _encode_text(self, text: str) -> list[int]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"the text holds a lone surrogate (U+{ord(text[error.start]):04X} at character {error.start}); "
                "give valid Unicode text"
            ) from None
        ids: list[int] = []
        for piece in _split(text, self._defined_pattern, self._literal):
            ids += [piece] if isinstance(piece, int) else self._encode_ordinary(piece)
        return ids


def _byte_alphabet() -> list[str]:
    """The character that stands for each byte in byte-level vocabularies: itself where it is printable in Latin-1,
    else the next free one from U+0100 on."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = [byte for byte in range(256) if byte not in printable]
    stand_ins = {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [stand_ins.get(byte, chr(byte)) for byte in range(256)]


def _any_of(names: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _split(text: str, pattern: re.Pattern[str] | None, ids: Mapping[str, int]) -> Iterator[str | int]:
    start = 0
    for match in pattern.finditer(text) if pattern else ():
        if match.start() > start:
            yield text[start : match.start()]
        yield ids[match[0]]
        start = match.end()
    if start < len(text):
        yield text[start:]


def _malformed(file: GGUFFile, what: str) -> ModelFormatError:
    return ModelFormatError(f"{file.path}: {what}; fetch or convert it again, or choose another model")


def _unsupported(file: GGUFFile, what: str) -> UnsupportedModelError:
    return UnsupportedModelError(f"{file.path}: {what}; choose another model")


def _check_kind(file: GGUFFile) -> None:
    kind = file.metadata.string("tokenizer.ggml.model")
    if kind != "gpt2":
        raise _unsupported(file, f"tokenizer {quoted(kind)} is not supported, only byte-level BPE ('gpt2') is")
    pre = file.metadata.string("tokenizer.ggml.pre", "default")
    if pre != "smollm":
        raise _unsupported(file, f"pre-tokenizer {quoted(pre)} is not supported, only 'smollm' is")


def _token_id(file: GGUFFile, key: str, vocab_size: int) -> int | None:
    full_key = f"tokenizer.ggml.{key}"
    if full_key not in file.metadata:
        return None
    token_id = file.metadata.integer(full_key)
    if not 0 <= token_id < vocab_size:
        raise _malformed(file, f"{full_key} is {token_id}, outside of the {vocab_size} tokens")
    return token_id


def _build_bpe(file: GGUFFile, tokens: list[str]) -> Callable[[str], list[int]]:
    import tokenizers  # here, not above: a help text must not wait for it

    vocabulary = {token: index for index, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        duplicate = next(token for index, token in enumerate(tokens) if vocabulary[token] != index)
        raise _malformed(file, f"token {quoted(duplicate)} is in the vocabulary twice")
    key = "tokenizer.ggml.merges"
    merges = file.metadata.strings(key) if key in file.metadata else []
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    try:
        bpe = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, pairs))
    except Exception as error:  # the library raises nothing narrower where a merge does not join two tokens to a third
        raise _malformed(file, f"{key} do not fit the vocabulary: {quoted(error)}") from error
    digits = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    words = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([digits, words])

    def encode(text: str) -> list[int]:
        ids: list[int] = bpe.encode(text, add_special_tokens=False).ids
        return ids

    return encode
