"""Chat templates: messages in, the model's own conversation format out. Knows nothing of token ids."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from paceline.errors import ModelFormatError, UsageError
from paceline.models.chat import sources
from paceline.models.gguf.file import GGUFFile
from paceline.models.quoting import quoted

if TYPE_CHECKING:
    import jinja2

Message = Mapping[str, str]
"""`{"role": …, "content": …}`, nothing else."""

_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


class ChatTemplate:
    """A model's chat template. Compiled on first use; rendering keeps no state."""

    def __init__(
        self,
        source: str,
        *,
        tool_source: str | None = None,
        bos_token: str | None = None,
        eos_token: str | None = None,
        unk_token: str | None = None,
        pad_token: str | None = None,
    ) -> None:
        """`tool_source`: what to render conversations with tools with, where it is another template."""
        self.source = source
        self._tool_source = tool_source
        tokens = {"bos_token": bos_token, "eos_token": eos_token, "unk_token": unk_token, "pad_token": pad_token}
        self._tokens = {key: token for key, token in tokens.items() if token is not None}

    @classmethod
    def from_gguf(cls, file: GGUFFile, name: str | Path | None = None) -> Self | None:
        """The file's template, or None where it has none. `name`: one of the file's templates, else a file's path."""
        choice = sources.choose(sources.from_gguf(file), name, file.path)
        if choice is None:
            return None
        tokens = file.metadata.strings("tokenizer.ggml.tokens")

        def special(key: str) -> str | None:
            token_id = file.metadata.integer(f"tokenizer.ggml.{key}_token_id", -1)
            return tokens[token_id] if 0 <= token_id < len(tokens) else None

        return cls(
            choice.source,
            tool_source=choice.tool_source,
            bos_token=special("bos"),
            eos_token=special("eos"),
            unk_token=special("unknown"),
            pad_token=special("padding"),
        )

    @classmethod
    def from_folder(
        cls,
        folder: Path,
        *,
        bos_token: str | None = None,
        eos_token: str | None = None,
        unk_token: str | None = None,
        pad_token: str | None = None,
        name: str | Path | None = None,
    ) -> Self | None:
        """The template of a Hugging Face folder, or None where it has none; `name` as in `from_gguf`.

        The caller knows the special tokens, which configurations write in several ways.
        """
        choice = sources.choose(sources.from_folder(folder), name, folder)
        if choice is None:
            return None
        return cls(
            choice.source,
            tool_source=choice.tool_source,
            bos_token=bos_token,
            eos_token=eos_token,
            unk_token=unk_token,
            pad_token=pad_token,
        )

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
