"""From messages to token ids, where only the template writes special tokens.

A rendering knows which of its characters the template wrote itself (`text.Text`). In the others, the characters that
names of special tokens consist of are swapped for stand-ins that occur nowhere else; then the text is cut at the
special tokens, which can only be the template's own, and the stand-ins are swapped back. This holds for all that a
caller gives: contents, parts, tools, arguments, variables, whatever the template makes of them. The text between two
special tokens is encoded in one piece, so ids across the border of a content are those of an ordinary rendering.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from paceline.errors import ModelFormatError, UsageError
from paceline.models.chat.messages import Message, Tool
from paceline.models.chat.sandbox.text import spans
from paceline.models.chat.template import ADVICE, ChatTemplate
from paceline.models.tokenizer.tokenizer import Tokenizer

_PRIVATE_USE = range(0xF0000, 0x110000)  # code points that Unicode never assigns
_IN_PRIVATE_USE = re.compile("[\U000f0000-\U0010ffff]")


def encode_chat(
    tokenizer: Tokenizer,
    template: ChatTemplate,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = True,
    tools: Sequence[Tool] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> list[int]:
    """The prompt of a conversation. Raises what `ChatTemplate.render` and `Tokenizer.encode` raise, and
    `ModelFormatError` where the template writes nothing."""
    rendered = template.render_marked(messages, add_generation_prompt, tools=tools, variables=variables)
    if not rendered:
        raise ModelFormatError(f"the chat template wrote nothing; {ADVICE}")
    stand_ins = _stand_ins(tokenizer, rendered)
    swapped = "".join(text if is_own else text.translate(stand_ins) for is_own, text in spans(rendered))
    restored = {ord(stand_in): chr(character) for character, stand_in in stand_ins.items()}
    pieces = tokenizer.split_special(swapped)
    return tokenizer.encode_pieces([piece if isinstance(piece, int) else piece.translate(restored) for piece in pieces])


def _stand_ins(tokenizer: Tokenizer, rendered: str) -> dict[int, str]:
    """For the characters of special tokens' names, others that do not occur in the text."""
    names = "".join(tokenizer.special_tokens)
    taken = {*_IN_PRIVATE_USE.findall(rendered), *names}
    free = (chr(code) for code in _PRIVATE_USE if chr(code) not in taken)
    characters = sorted(set(map(ord, names)))
    stand_ins = dict(zip(characters, islice(free, len(characters)), strict=False))
    if len(stand_ins) < len(characters):
        raise UsageError("the conversation holds all of Unicode's private characters; leave some out")
    return stand_ins
