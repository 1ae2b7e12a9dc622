"""Text to token ids and back, for every kind of vocabulary.

Text is ordinary unless the caller says otherwise: `<|im_end|>` typed by a user becomes the tokens of its characters,
never the end-of-turn token. Knows neither files nor chat templates.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

import numpy as np

from paceline.errors import UsageError
from paceline.models.tokenizer.literals import Literals
from paceline.models.tokenizer.vocabulary import TokenKind, Vocabulary, filler_ids

if TYPE_CHECKING:
    from paceline.models.gguf.file import GGUFFile

Pieces = Sequence[str | int]
"""Ordinary text, and the ids of the special tokens between."""


@dataclass(frozen=True, slots=True)
class TextModel:
    """How ordinary text becomes ids, and an ordinary token bytes."""

    split: Callable[[str, bool], Iterable[str]]
    """Text to words, normalised; the flag says that nothing stands before the text."""
    encode_word: Callable[[str], Sequence[int]]
    spell: Callable[[str], bytes]
    """The bytes that an ordinary token stands for."""
    has_space_prefix: bool = False
    """Encoding puts a space before the text, which decoding takes away again."""
    max_token_bytes: int | None = None
    """The most bytes of a text that one token can stand for; None where there is no bound."""
    dropped_bytes: bytes = b""
    """The bytes of a text that no token stands for."""


class Tokenizer:
    """Text to token ids and back. Immutable, and safe to share between threads."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        model: TextModel,
        *,
        left_strip: Collection[int] = (),
        right_strip: Collection[int] = (),
    ) -> None:
        """`left_strip`, `right_strip`: tokens found by name that swallow the white space before or after them."""
        self.vocab_size = len(vocabulary.tokens)
        self.bos_id = vocabulary.bos_id
        self.eos_id = vocabulary.eos_id
        self.add_bos = vocabulary.add_bos
        self.add_eos = vocabulary.add_eos
        self.stop_ids = vocabulary.stop_ids
        self.has_space_prefix = model.has_space_prefix
        special = vocabulary.of_kind(TokenKind.UNKNOWN, TokenKind.CONTROL)
        defined = vocabulary.of_kind(TokenKind.USER_DEFINED)
        self.special_tokens: Mapping[str, int] = MappingProxyType(special)
        self.unproducible_ids = filler_ids(vocabulary.tokens, vocabulary.kinds)
        """Ids that only fill the vocabulary up: sampling must leave them out."""
        self._vocabulary = vocabulary
        self._model = model
        self._special_ids = frozenset(special.values())
        self._literal_ids = self._special_ids.union(defined.values())
        self._special = Literals(special, left=left_strip, right=right_strip)
        self._defined = Literals(defined, left=left_strip, right=right_strip)
        self._longest_defined = max((len(name.encode()) for name in defined), default=0)
        self._texts: dict[int, bytes] = {}  # filled on demand; whoever comes second writes the same

    @classmethod
    def from_gguf(cls, file: "GGUFFile") -> Self:
        """Build from the file's metadata.

        Raises `UnsupportedModelError` for a kind of tokenizer that is not known and `ModelFormatError` for
        contradictory tables; warns with `PacelineWarning` where a setting has to be guessed.
        """
        from paceline.models.tokenizer.gguf import read_tokenizer

        return cls(*read_tokenizer(file))

    @classmethod
    def from_folder(cls, path: Path) -> Self:
        """Build from a Hugging Face folder: tokenizer.json and the settings beside it.

        Raises `ModelNotFoundError`, `UnsupportedModelError` or `ModelFormatError`.
        """
        from paceline.models.tokenizer.folder import read_folder

        parts = read_folder(path)
        return cls(parts.vocabulary, parts.model, left_strip=parts.left_strip, right_strip=parts.right_strip)

    def encode(self, text: str, *, allow_special: bool = False) -> list[int]:
        """The ids of a whole prompt, with the BOS token before and the EOS token behind it where the model asks for it.

        With `allow_special`, names of special tokens in the text become those tokens: for trusted text only. Bytes for
        which the vocabulary has no token are left out, as every tokenizer over such a file does: SmolLM2's lacks a few.
        Raises `UsageError` for text with lone surrogates, which no UTF-8 can hold.
        """
        ids = self.encode_pieces(self.split_special(text) if allow_special else [text])
        if self.add_eos and self.eos_id is not None and ids[-1:] != [self.eos_id]:
            ids.append(self.eos_id)
        return ids

    def split_special(self, text: str) -> Pieces:
        """Cut text at the names of special tokens, the longest first where several begin at one place."""
        return list(self._special.split(text))

    def encode_pieces(self, pieces: Pieces) -> list[int]:
        """Like `encode`, where the caller has decided already which parts are special tokens; they are to be continued,
        so no EOS token is added."""
        ids: list[int] = []
        for index, piece in enumerate(pieces):
            if isinstance(piece, int):
                ids.append(piece)
            else:
                ids += self._encode_text(piece, index == 0)
        if self.add_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            ids.insert(0, self.bos_id)  # once: a template may have written it already
        return ids

    def encode_continuation(self, text: str) -> list[int]:
        """The ids of a text that continues another one: no BOS or EOS token, no space put before it, no special tokens.

        Raises `UsageError` for text with lone surrogates.
        """
        return self._encode_text(text, is_first=False)

    def min_num_tokens(self, text: str) -> int:
        """A lower bound of `len(encode(text))`, at the cost of a look at the text's length: no token is longer than the
        longest. For refusing what cannot fit before it is encoded."""
        if self._model.max_token_bytes is None:
            return 0
        size = len(text.encode(errors="surrogatepass").translate(None, self._model.dropped_bytes))
        return -(-size // max(self._model.max_token_bytes, self._longest_defined))

    def decode(self, ids: Iterable[int], *, skip_special: bool = True, is_continuation: bool = False) -> str:
        """Text of the ids. Bytes that are no valid UTF-8 become U+FFFD; special tokens are left out by default.

        The space that a SentencePiece vocabulary puts before a text is left out too, unless the ids continue another
        text: there it is a space between words.
        """
        skipped = self._special_ids if skip_special else frozenset()
        text = b"".join(self.token_bytes(i) for i in ids if i not in skipped)
        if self.has_space_prefix and not is_continuation:
            text = text.removeprefix(b" ")
        return text.decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for: its name for special tokens; perhaps part of a character for others."""
        if not 0 <= token_id < self.vocab_size:
            raise UsageError(f"token id {token_id} is outside of the vocabulary, 0 to {self.vocab_size - 1}")
        token = self._vocabulary.tokens[token_id]
        if token_id in self._literal_ids:
            return token.encode()
        if self._vocabulary.kinds[token_id] == TokenKind.BYTE:
            return bytes([int(token[1:-1], 16)])
        return self._model.spell(token)

    def text_bytes(self, token_id: int) -> bytes:
        """What a token adds to a text: nothing for special tokens, its bytes for others. Remembered, for every token of
        every answer passes here."""
        text = self._texts.get(token_id)
        if text is None:
            text = b"" if self.is_special(token_id) else self.token_bytes(token_id)
            self._texts[token_id] = text
        return text

    def differences(self, other: "Tokenizer", ids: Iterable[int]) -> list[int]:
        """Those of `ids` that do not stand for the same bytes in both, or that only one of the two has."""
        same_size = min(self.vocab_size, other.vocab_size)
        same = np.zeros(max(self.vocab_size, other.vocab_size), bool)
        if self._model.spell is other._model.spell:  # then a token of the same name and kind needs no spelling
            names = zip(self._vocabulary.tokens, other._vocabulary.tokens, strict=False)
            same[:same_size] = [mine == theirs for mine, theirs in names]
            same[:same_size] &= self._vocabulary.kinds[:same_size] == other._vocabulary.kinds[:same_size]
        return [i for i in ids if not same[i] and (i >= same_size or self.token_bytes(i) != other.token_bytes(i))]

    def is_special(self, token_id: int) -> bool:
        """True for control tokens, which are part of the format and not of the text."""
        return token_id in self._special_ids

    def _encode_text(self, text: str, is_first: bool) -> list[int]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"the text holds a lone surrogate (U+{ord(text[error.start]):04X} at character {error.start}); "
                "give valid Unicode text"
            ) from None
        ids: list[int] = []
        model = self._model
        for piece in self._defined.split(text):
            if isinstance(piece, int):
                ids.append(piece)
            else:
                for word in model.split(piece, is_first):
                    ids += model.encode_word(word)
            is_first = False
        return ids
