"""Chat templates: messages in, the model's own conversation format out. Knows nothing of token ids."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self

from paceline.errors import ModelFormatError, UsageError
from paceline.models.gguf.file import GGUFFile
from paceline.models.quoting import quoted

if TYPE_CHECKING:
    import jinja2

Message = Mapping[str, str]
"""`{"role": …, "content": …}`, nothing else."""

_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_KEY = "tokenizer.chat_template"


class ChatTemplate:
    """A model's chat template. Compiled on first use; rendering keeps no state."""

    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        self.source = source
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}

    @classmethod
    def from_gguf(cls, file: GGUFFile) -> Self | None:
        """The file's template, or None where it has none."""
        if _KEY not in file.metadata:
            return None
        tokens = file.metadata.strings("tokenizer.ggml.tokens")

        def name(key: str) -> str:
            token_id = file.metadata.integer(f"tokenizer.ggml.{key}_token_id", -1)
            return tokens[token_id] if 0 <= token_id < len(tokens) else ""

        return cls(file.metadata.string(_KEY), bos_token=name("bos"), eos_token=name("eos"))

    def render(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
        """The conversation as text, ending where the assistant is to go on if `add_generation_prompt`.

        The result mixes the template's special tokens with whatever the contents hold: to get token ids use
        `paceline.models.encode_chat`, which keeps the two apart. Raises `UsageError` for messages that are malformed or
        that the template refuses, `ModelFormatError` where the template itself fails.
        """
        check_messages(messages)
        from paceline.models.chat.sandbox import TemplateRefusalError, limits, max_output

        max_size = max_output(sum(len(message["content"]) for message in messages))
        values = {"messages": [dict(message) for message in messages], "tools": None, **self._tokens}
        pieces: list[str] = []
        size = 0
        template = self._compiled
        try:
            for piece in template.generate(values, **limits(max_size), add_generation_prompt=add_generation_prompt):
                pieces.append(piece)
                size += len(piece)
                if size > max_size:
                    raise ModelFormatError(f"the chat template wrote more than {max_size} characters; use --no-chat")
        except TemplateRefusalError as refusal:
            raise UsageError(f"the model's chat template refuses these messages: {_one_line(refusal)}") from refusal
        except ModelFormatError:
            raise
        except Exception as error:  # a template is a program and can fail in any way
            raise ModelFormatError(f"the model's chat template failed: {_one_line(error)}; use --no-chat") from error
        return "".join(pieces)

    @cached_property
    def _compiled(self) -> "jinja2.Template":
        from jinja2 import TemplateSyntaxError

        from paceline.models.chat.sandbox import TemplateEnvironment

        try:
            return TemplateEnvironment().from_string(self.source)
        except (TemplateSyntaxError, RecursionError) as error:
            raise ModelFormatError(
                f"the model's chat template cannot be parsed: {_one_line(error)}; use --no-chat"
            ) from error


def check_messages(messages: Sequence[Message]) -> None:
    """Raise `UsageError` naming the first message that is not a plain role with a text."""
    if not messages:
        raise UsageError("the conversation has no messages; give at least one")
    for index, message in enumerate(messages):
        problem = _problem(message)
        if problem:
            raise UsageError(f"message {index} {problem}")


def _problem(message: object) -> str:
    if not isinstance(message, Mapping):
        return f"is a {type(message).__name__}, expected a mapping with 'role' and 'content'"
    for key in ("role", "content"):
        if not isinstance(message.get(key), str):
            return f"has no {key!r} that is a string"
    unknown = sorted(str(key) for key in message.keys() - {"role", "content"})
    if unknown:
        return f"has the unknown key {quoted(unknown[0])}, expected only 'role' and 'content'"
    if not _ROLE.fullmatch(message["role"]):  # a role becomes part of the format: it must not be able to end a turn
        return f"has the role {quoted(message['role'])}, expected a plain word such as 'user'"
    return ""


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
