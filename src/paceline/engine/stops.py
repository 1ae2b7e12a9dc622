"""Stop strings in a sequence's tokens: the first token that completes one, without reading old text again."""

from collections.abc import Callable, Sequence

from paceline.stop_bytes import StopBytes
from paceline.value import value


@value
class StopMatch:
    """A stop string that is complete.

    `num_tokens`: of the scanned tokens, those up to the one that completes it. `num_bytes`: bytes of text from its
    first byte to the end of that token's text, which the text must lose. `text`: the stop string.
    """

    num_tokens: int
    num_bytes: int
    text: str


class StopStrings:
    """The stop strings of one sequence, and as much of the text behind it as one of them may have begun in.

    `token_text`: the bytes that a token adds to the text, perhaps none or part of a character.
    """

    def __init__(self, stops: Sequence[str], token_text: Callable[[int], bytes]) -> None:
        self._stops = StopBytes(stops)
        self._token_text = token_text
        self._open = b""

    def find(self, tokens: Sequence[int], first: int) -> StopMatch | None:
        """The first stop string that is completed by one of `tokens`, which come next; one that is completed by a token
        with an index below `first` does not count. Of several that one token completes, the one that begins first, the
        longest of those. Changes nothing.
        """
        text = self._open
        for index, token in enumerate(tokens):
            end = len(text)
            text += self._token_text(token)
            if index >= first and (stop := self._stops.completed(text, end)) is not None:
                return StopMatch(index + 1, len(text) - stop.begin, stop.text)
        return None

    def extend(self, tokens: Sequence[int]) -> None:
        """Add committed tokens. Of their text it keeps what a stop string may begin in, less than the longest one."""
        text = self._open + b"".join(map(self._token_text, tokens))
        self._open = text[len(text) - self._stops.num_open(text) :]
