"""SentencePiece vocabularies: a space is the character U+2581, and characters without a token are spelt in bytes.

Merging (`llama` in GGUF files) goes by the score of the token that a pair becomes, the best first.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from paceline.models.tokenizer.merging import PairMerger
from paceline.models.tokenizer.tokenizer import TextModel

SPACE = "\u2581"
_UTF8_BYTES = 4  # of one character, at most


def spell_spaces(token: str) -> bytes:
    return token.replace(SPACE, " ").encode()


class ByteFallback:
    """The ids of what has no token: its bytes' tokens, or else one of the unknown token for a run of such symbols."""

    def __init__(self, byte_ids: Mapping[int, int], unknown_id: int | None) -> None:
        self.is_complete = len(byte_ids) == 256
        self._byte_ids = byte_ids
        self._unknown: Sequence[int] = () if unknown_id is None else (unknown_id,)

    def __call__(self, symbol: str) -> Sequence[int]:
        ids = [self._byte_ids.get(byte) for byte in symbol.encode()]
        return self._unknown if None in ids else [i for i in ids if i is not None]

    def fusing(self, encode: Callable[[str], Sequence[int]]) -> Callable[[str], Sequence[int]]:
        """The same encoder with one unknown token in the place of several that follow one another."""

        def fused(word: str) -> Sequence[int]:
            found: list[int] = []
            for token_id in encode(word):
                if not (found[-1:] == [token_id] and token_id in self._unknown):
                    found.append(token_id)
            return found

        return fused


def run_cutter(tokens: Iterable[str]) -> Callable[[str], list[str]]:
    """Cuts a text into runs that no token crosses: before a space, but not between two characters between which some
    token has one. Encoding each run alone gives what encoding the whole text would, and runs are words, which recur."""
    before_spaces = "\n".join(tokens).split(SPACE)[:-1]
    crossed = {text[-1] for text in before_spaces if text}  # a line feed too: a token may end, and the next begin so
    inside = re.escape("".join(sorted(crossed)) + SPACE)
    return re.compile(f"(?<=[^{inside}])(?={SPACE})").split


def space_splitter(tokens: Iterable[str], has_space_prefix: bool) -> Callable[[str, bool], Iterable[str]]:
    """Text to runs with U+2581 for spaces and, where asked for, one in front of every text."""
    cut = run_cutter(tokens)
    prefix = SPACE if has_space_prefix else ""

    def split(text: str, _is_first: bool) -> Iterable[str]:
        return cut(prefix + text.replace(" ", SPACE))

    return split


def scored_model(
    ids: Mapping[str, int], ranks: Mapping[str, float], fallback: ByteFallback, *, has_space_prefix: bool
) -> TextModel:
    """`ids`: the ordinary tokens; `ranks`: lower for a higher score.

    Every text between special or user-defined tokens gets its space in front, as in llama.cpp.
    """
    split = space_splitter(ids, has_space_prefix)
    merge = PairMerger(ids, ranks, "", fallback)
    return sentencepiece_model(ids, split, merge, fallback, has_space_prefix=has_space_prefix)


def sentencepiece_model(
    ids: Iterable[str],
    split: Callable[[str, bool], Iterable[str]],
    encode_word: Callable[[str], Sequence[int]],
    fallback: ByteFallback,
    *,
    has_space_prefix: bool,
    has_bound: bool = True,
) -> TextModel:
    """A model whose tokens are characters, with U+2581 for spaces, whatever way it finds them in a word.

    `ids`: the ordinary tokens. `has_bound` is false where `split` may leave out any part of a text.
    """
    longest = max(map(len, ids), default=1) * _UTF8_BYTES
    return TextModel(
        split,
        encode_word if fallback.is_complete else fallback.fusing(encode_word),
        spell_spaces,
        has_space_prefix=has_space_prefix,
        max_token_bytes=longest if has_bound and fallback.is_complete else None,
    )
