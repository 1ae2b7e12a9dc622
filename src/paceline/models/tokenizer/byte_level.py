"""Byte-level vocabularies: a token is a run of bytes, each written as a printable character."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from paceline.models.tokenizer.merging import PairMerger
from paceline.models.tokenizer.tokenizer import TextModel

_NFC_SHRINKAGE = 3  # normalisation to NFC makes at most so many bytes one (three jamo to a Hangul syllable)


def byte_alphabet() -> list[str]:
    """The character that stands for each byte: itself where it is printable in Latin-1, else the next free one from
    U+0100 on."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = [byte for byte in range(256) if byte not in printable]
    stand_ins = {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [stand_ins.get(byte, chr(byte)) for byte in range(256)]


_BYTES = {character: byte for byte, character in enumerate(byte_alphabet())}


def spell_bytes(token: str) -> bytes:
    """The bytes of a token; a token not of the byte alphabet is its own text."""
    try:
        return bytes([_BYTES[character] for character in token])
    except KeyError:
        return token.encode()


def byte_level_model(
    ids: Mapping[str, int],
    ranks: Mapping[str, float],
    split: Callable[[str, bool], Iterable[str]],
    *,
    keeps_words: bool = False,
    is_composed: bool = False,
    has_bound: bool = True,
) -> TextModel:
    """`ids`: the ordinary tokens; `ranks`: their merges, as "left right", by rank.

    Bytes that are no token are left out before anything is merged, as the `tokenizers` library does, and so is what
    `split` gives that stands for no byte. A special token that merges would give becomes the tokens of its bytes.
    `has_bound` is false where `split` may leave out any part of
    a text.
    """
    missing = {byte: character for byte, character in enumerate(byte_alphabet()) if character not in ids}

    def spelled(symbol: str) -> Sequence[int]:
        return [ids[character] for character in symbol if character in ids]

    merge = PairMerger(ids, ranks, " ", spelled, keeps_words=keeps_words)
    without = {ord(character): None for character in missing.values()}

    def encode_word(word: str) -> Sequence[int]:
        return merge(word.translate(without))

    longest = max(map(len, ids), default=1) * (_NFC_SHRINKAGE if is_composed else 1)
    return TextModel(
        split,
        encode_word if missing else merge,
        spell_bytes,
        max_token_bytes=longest if has_bound else None,
        dropped_bytes=bytes(missing),
    )
