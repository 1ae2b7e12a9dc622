"""Incremental detokenisation: text as it comes, never half a character, never what a stop string may take back.

The joined pieces equal the decoding of all ids at once, whatever the split, invalid bytes included.
"""

import codecs
from collections.abc import Iterable, Sequence

from paceline.models.tokenizer.tokenizer import Tokenizer
from paceline.stop_bytes import StopBytes


class Detokenizer:
    """Turns one sequence's tokens into text. Holds at most three bytes back, those of an unfinished character, and the
    text that may belong to one of `stops`.

    By default the tokens continue a prompt, so that a first `▁world` is " world": the space is part of what the model
    wrote. With `is_continuation` false they are a whole text, without the space that SentencePiece puts before one.

    Whether a stop string ends the text is not decided here: one that the newest token has completed is held back until
    another token follows, or until `flush` tells what to cut. They are sought in all bytes that the tokens stand for, a
    space that is not shown included.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        skip_special: bool = True,
        is_continuation: bool = True,
        stops: Sequence[str] = (),
    ) -> None:
        self._token_text = tokenizer.text_bytes if skip_special else tokenizer.token_bytes
        self._strips = tokenizer.has_space_prefix and not is_continuation
        self._is_start = True
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stops = StopBytes(stops) if stops else None
        self._held = b""

    def push(self, ids: Iterable[int]) -> str:
        """The text that these tokens complete; empty while a character or a stop string is unfinished."""
        if self._stops is None:
            return self._decode(b"".join(map(self._token_text, ids)))
        texts = list(map(self._token_text, ids))
        if not texts:
            return ""
        text = self._held + b"".join(texts)
        num_held = self._stops.num_open(text)
        stop = self._stops.completed(text, len(text) - len(texts[-1]))
        if stop is not None:
            num_held = max(num_held, len(text) - stop.begin)
        end = len(text) - num_held
        self._held = text[end:]
        return self._decode(text[:end])

    def flush(self, num_cut: int = 0) -> str:
        """What is held back, without its last `num_cut` bytes: those from a stop string on, as the engine counts them.
        An unfinished character becomes U+FFFD. Ready for another sequence then.

        Raises ValueError for more bytes than are held back: they may have been shown.
        """
        if not 0 <= num_cut <= len(self._held):
            raise ValueError(f"{num_cut} bytes are to be cut; expected 0 to {len(self._held)}, what is held back")
        rest = self._decode(self._held[: len(self._held) - num_cut], final=True)
        self._decoder.reset()
        self._is_start = True
        self._held = b""
        return rest

    def _decode(self, text: bytes, final: bool = False) -> str:
        if self._is_start and text:
            self._is_start = False
            text = text.removeprefix(b" ") if self._strips else text
        return self._decoder.decode(text, final)
