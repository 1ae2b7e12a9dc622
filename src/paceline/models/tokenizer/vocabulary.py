"""Vocabularies: the tokens, what kind each one is, and what ends a text. Knows nothing of how text is split."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Kinds = NDArray[np.int8]
"""Of each token by id, a `TokenKind`."""


class TokenKind(IntEnum):
    """What a token is for; the values are GGUF's token types."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    """Part of the format: never made from ordinary text."""
    USER_DEFINED = 4
    """Found in ordinary text before anything else is, and kept whole."""
    UNUSED = 5
    BYTE = 6
    """`<0xHH>`: one byte of a character that has no token."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens by id, with their kinds, one for each; ids are `0 … len(tokens) - 1`."""

    tokens: Sequence[str]
    kinds: Kinds
    bos_id: int | None = None
    eos_id: int | None = None
    add_bos: bool = False
    add_eos: bool = False
    stop_ids: frozenset[int] = frozenset()

    def of_kind(self, *kinds: int) -> dict[str, int]:
        """The named tokens of these kinds. Of two with one name the later counts."""
        return {self.tokens[i]: i for i in ids_of_kind(self.kinds, *kinds) if self.tokens[i]}


def ordinary_ids(tokens: Sequence[str], kinds: Kinds) -> dict[str, int]:
    """The tokens that ordinary text can become. Of two with one name one is missing."""
    ids = dict(zip(tokens, range(len(tokens)), strict=True))
    for i in np.flatnonzero((kinds != TokenKind.NORMAL) & (kinds != TokenKind.USER_DEFINED)).tolist():
        if ids.get(tokens[i]) == i:
            del ids[tokens[i]]
    return ids


def ids_of_kind(kinds: Kinds, *wanted: int) -> list[int]:
    """In ascending order."""
    ids: list[int] = np.flatnonzero(np.isin(kinds, wanted)).tolist()
    return ids


# fmt: off
_STOP_NAMES = frozenset([  # end a turn in one format or another, whatever the model's own settings say
    "<|endoftext|>", "<|im_end|>", "<|end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|return|>", "<|call|>",
    "<|calls|>", "<|flush|>", "<end_of_turn>", "<end_of_utterance>", "<turn|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
    "<eos>", "<｜end▁of▁sentence｜>", "[e~[",
])
# fmt: on
_CONTROL_STOP_NAMES = frozenset(["</s>"])  # as a user-defined token it is HTML (Gemma)
_MESSAGE_END = "<|end|>"
_TURN_ENDS = (("<|return|>", "<|call|>"), ("<|flush|>", "<|calls|>"))  # where these exist, a turn has several messages
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_FILLER = re.compile(r"(\[PAD\d+\])?")


def stop_ids(tokens: Sequence[str], kinds: Kinds, known: Iterable[int | None]) -> frozenset[int]:
    """The ids that end a text: those that the model names (`known`), and end-of-turn tokens by their names.

    An ordinary token of such a name is text.
    """
    named = {
        tokens[i]: i
        for i in np.flatnonzero(kinds != TokenKind.NORMAL).tolist()
        if tokens[i] in _STOP_NAMES or (tokens[i] in _CONTROL_STOP_NAMES and kinds[i] == TokenKind.CONTROL)
    }
    if any(named.keys() >= set(ends) for ends in _TURN_ENDS):
        named.pop(_MESSAGE_END, None)
    return frozenset(named.values()) | {i for i in known if i is not None}


def filler_ids(tokens: Sequence[str], kinds: Kinds) -> frozenset[int]:
    """The ids that only fill the vocabulary up to a round size: no text has them, so a model must not write them."""
    unused = ids_of_kind(kinds, TokenKind.UNUSED)
    if "" not in tokens and "[PAD" not in "".join(tokens):  # the two spare most vocabularies a look at every token
        return frozenset(unused)
    return frozenset([*unused, *(i for i, token in enumerate(tokens) if _FILLER.fullmatch(token))])


def byte_of(token: str) -> int | None:
    """The byte that a token of kind `BYTE` is for; None for another name than `<0xHH>`."""
    match = _BYTE.fullmatch(token)
    return int(match[1], 16) if match else None
