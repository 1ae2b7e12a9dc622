"""Vocabularies: the tokens, what kind each one is, and what ends a text. Knows nothing of how text is split."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum


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
    kinds: Sequence[int]
    bos_id: int | None = None
    eos_id: int | None = None
    add_bos: bool = False
    add_eos: bool = False
    stop_ids: frozenset[int] = frozenset()

    def of_kind(self, *kinds: int) -> dict[str, int]:
        """The named tokens of these kinds. Of two with one name the later counts."""
        tokens = self.tokens
        return {tokens[i]: i for i, kind in enumerate(self.kinds) if kind in kinds and tokens[i]}


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
_FILLER = re.compile(r"\[PAD\d+\]")


def stop_ids(tokens: Sequence[str], kinds: Sequence[int], known: Iterable[int | None]) -> frozenset[int]:
    """The ids that end a text: those that the model names (`known`), and end-of-turn tokens by their names.

    An ordinary token of such a name is text.
    """
    named = {
        tokens[i]: i
        for i, kind in enumerate(kinds)
        if kind != TokenKind.NORMAL
        and (tokens[i] in _STOP_NAMES or (tokens[i] in _CONTROL_STOP_NAMES and kind == TokenKind.CONTROL))
    }
    if any(named.keys() >= set(ends) for ends in _TURN_ENDS):
        named.pop(_MESSAGE_END, None)
    return frozenset(named.values()) | {i for i in known if i is not None}


def filler_ids(tokens: Sequence[str], kinds: Sequence[int]) -> frozenset[int]:
    """The ids that only fill the vocabulary up to a round size: no text has them, so a model must not write them."""
    return frozenset(
        i for i, kind in enumerate(kinds) if kind == TokenKind.UNUSED or not tokens[i] or _FILLER.fullmatch(tokens[i])
    )


def byte_of(token: str) -> int | None:
    """The byte that a token of kind `BYTE` is for; None for another name than `<0xHH>`."""
    match = _BYTE.fullmatch(token)
    return int(match[1], 16) if match else None
