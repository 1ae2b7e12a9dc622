"""From messages to token ids, where only the template writes special tokens.

A content may hold the name of a special token, or begin or end with part of one. Characters at which such a name would
come about are swapped for stand-ins that occur nowhere else, the template is rendered, the result is cut at the special
tokens (which are now the template's own), and only then are the stand-ins swapped back. The text between two special
tokens is encoded in one piece, so ids across the border of a content are those of an ordinary rendering.

A template that rewrites contents (changes their case, cuts pieces out) could still make a name of what was none.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice

from paceline.errors import ModelFormatError
from paceline.models.chat.template import ChatTemplate, Message, check_messages
from paceline.models.tokenizer.tokenizer import Tokenizer

_PRIVATE_USE = range(0xF0000, 0xFFFFE)  # code points that Unicode never assigns


def encode_chat(
    tokenizer: Tokenizer, template: ChatTemplate, messages: Sequence[Message], *, add_generation_prompt: bool = True
) -> list[int]:
    """The prompt of a conversation. Raises what `ChatTemplate.render` and `Tokenizer.encode` raise, and
    `ModelFormatError` where the template writes nothing."""
    check_messages(messages)
    names = tuple(tokenizer.special_tokens)
    guard = _Guard(names, chain([template.source], (message["content"] for message in messages)))
    guarded = [{"role": message["role"], "content": guard.apply(message["content"])} for message in messages]
    rendered = template.render(guarded, add_generation_prompt)
    if not rendered:
        raise ModelFormatError("the model's chat template wrote nothing; use --no-chat")
    pieces = tokenizer.split_special(rendered)
    return tokenizer.encode_pieces([piece if isinstance(piece, int) else guard.remove(piece) for piece in pieces])


class _Guard:
    """Swaps single characters for stand-ins so that no special name starts, ends or lies in a guarded text."""

    def __init__(self, names: Sequence[str], texts: Iterable[str]) -> None:
        characters = sorted(set("".join(names)))
        taken = {character for text in texts for character in text if ord(character) in _PRIVATE_USE}
        free = (chr(code) for code in _PRIVATE_USE if chr(code) not in taken)
        self._names = names
        self._stand_ins: Mapping[str, str] = dict(zip(characters, islice(free, len(characters)), strict=True))
        self._restored = str.maketrans({stand_in: character for character, stand_in in self._stand_ins.items()})
        self._heads = frozenset(name[:size] for name in names for size in range(1, len(name)))
        self._tails = frozenset(name[-size:] for name in names for size in range(1, len(name)))
        self._longest = max(map(len, names), default=0)

    def remove(self, text: str) -> str:
        return text.translate(self._restored)

    def apply(self, text: str) -> str:
        swapped = {start for name in self._names for start in _occurrences(text, name)} | self._border(text)
        if not swapped:
            return text
        return "".join(
            self._stand_ins[character] if index in swapped else character for index, character in enumerate(text)
        )

    def _border(self, text: str) -> set[int]:
        """Where a name could come about together with what the template puts around, blanks stripped or not."""
        swapped = set()
        stripped = text.strip()
        start = len(text) - len(text.lstrip())
        for low, high in {(0, len(text)), (start, start + len(stripped))}:
            whole = text[low:high]
            for size in range(1, min(self._longest, len(whole) + 1)):
                if whole[-size:] in self._heads:
                    swapped.add(high - size)  # the first character of a name that may go on behind
                if whole[:size] in self._tails:
                    swapped.add(low + size - 1)  # the last character of a name that may have begun before
            if whole and any(whole in name for name in self._names):
                swapped.add(low)
        return swapped


def _occurrences(text: str, name: str) -> Iterable[int]:
    start = text.find(name)
    while start >= 0:
        yield start
        start = text.find(name, start + 1)
