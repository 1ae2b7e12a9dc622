"""Incremental detokenisation: text as it comes, never half a character.

The joined pieces equal the decoding of all ids at once, whatever the split, invalid bytes included.
"""

import codecs
from collections.abc import Iterable

from paceline.models.tokenizer.tokenizer import Tokenizer


class Detokenizer:
    """Turns one sequence's tokens into text. Holds at most three bytes back: those of an unfinished character.

    By default the tokens continue a prompt, so that a first `▁world` is " world": the space is part of what the model
    wrote. With `is_continuation` false they are a whole text, without the space that SentencePiece puts before one.
    """

    def __init__(self, tokenizer: Tokenizer, *, skip_special: bool = True, is_continuation: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._strips = tokenizer.has_space_prefix and not is_continuation
        self._is_start = True
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, ids: Iterable[int]) -> str:
        """The text that these tokens complete; empty while a character is unfinished."""
        tokenizer = self._tokenizer
        kept = (i for i in ids if not (self._skip_special and tokenizer.is_special(i)))
        text = b"".join(map(tokenizer.token_bytes, kept))
        if self._is_start and text:
            self._is_start = False
            text = text.removeprefix(b" ") if self._strips else text
        return self._decoder.decode(text)

    def flush(self) -> str:
        """What is held back, as U+FFFD: the sequence has ended within a character. Ready for another sequence then."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        self._is_start = True
        return rest
