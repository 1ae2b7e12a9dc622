"""Chat templates: messages in, the model's own conversation format out. Knows nothing of token ids."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from paceline.errors import ModelFormatError, UsageError
from paceline.models.chat import sources
from paceline.models.chat.fitting import Fit, find_fit, fitted
from paceline.models.chat.messages import Message, Tool, check_messages, check_tools, check_variables, size
from paceline.models.gguf.file import GGUFFile
from paceline.models.quoting import one_line, quoted

if TYPE_CHECKING:
    from jinja2 import nodes

ADVICE = "use another chat template, or a plain prompt (--chat-template FILE, --no-chat)"
_PROBE_STEPS = 20_000  # small conversations, rendered to see what the template takes


class ChatTemplate:
    """A model's chat template. Parsed on first use; rendering keeps no state."""

    def __init__(
        self,
        source: str,
        *,
        tool_source: str | None = None,
        bos_token: str | None = None,
        eos_token: str | None = None,
        unk_token: str | None = None,
        pad_token: str | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`tool_source`: what to render conversations with tools with, where it is another template. A special token
        that is None has no value in the template. `now` is the clock of `strftime_now`."""
        self.source = source
        tokens = {"bos_token": bos_token, "eos_token": eos_token, "unk_token": unk_token, "pad_token": pad_token}
        self._tokens = {key: token for key, token in tokens.items() if token is not None}
        self._now = now
        self._for_tools = (
            None
            if tool_source is None
            else ChatTemplate(
                tool_source, bos_token=bos_token, eos_token=eos_token, unk_token=unk_token, pad_token=pad_token, now=now
            )
        )

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

    def render(
        self,
        messages: Sequence[Message],
        add_generation_prompt: bool = True,
        *,
        tools: Sequence[Tool] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The conversation as text, ending where the assistant is to go on if `add_generation_prompt`.

        `variables` are more names for the template, such as `enable_thinking`. Text parts are joined by line ends for
        templates that know texts only, and arguments of tool calls are given as mappings where the template takes
        them, whatever the caller has.

        The result mixes the template's special tokens with whatever the contents hold: to get token ids use
        `paceline.models.encode_chat`, which keeps the two apart. Raises `UsageError` for messages that are malformed or
        that the template refuses, and for tools and variables that it does not know; `ModelFormatError` where the
        template itself fails, or goes beyond the limits of `budget`.
        """
        return str(self.render_marked(messages, add_generation_prompt, tools=tools, variables=variables))

    def render_marked(
        self,
        messages: Sequence[Message],
        add_generation_prompt: bool = True,
        *,
        tools: Sequence[Tool] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """Like `render`, with marks at the characters that are the template's own; see `text.Text`."""
        given = check_messages(messages)
        checked_tools = check_tools(tools)
        if checked_tools and self._for_tools is not None:
            return self._for_tools.render_marked(messages, add_generation_prompt, tools=tools, variables=variables)
        extra = check_variables(variables)
        self._check_known(given, checked_tools, extra)
        ready = fitted(given, self._fit)
        values = {"documents": None, **extra, "messages": ready, "tools": checked_tools}
        return self._run({**values, "add_generation_prompt": add_generation_prompt}).text

    def num_steps(self, messages: Sequence[Message]) -> int:
        """What rendering costs, in the steps of `budget`."""
        return self._run({"messages": fitted(check_messages(messages), self._fit), "tools": None}).num_steps

    def _check_known(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, variables: Mapping[str, Any]
    ) -> None:
        """Refuse what the template would leave out without a word."""
        known = self._program.names
        if tools and "tools" not in known:
            raise UsageError("the chat template has no place for tools; give none, or use another template")
        if "tool_calls" not in self._program.words and any("tool_calls" in message for message in messages):
            raise UsageError("the chat template has no place for tool calls; use another template")
        unknown = sorted(variables.keys() - known)
        if unknown:
            raise UsageError(f"the chat template has no variable {quoted(unknown[0])}")

    @cached_property
    def _fit(self) -> Fit:
        def render(messages: list[dict[str, Any]]) -> str:
            values = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": False}
            return self._run(values, is_probe=True).text

        return find_fit(render)

    def _run(self, values: dict[str, Any], *, is_probe: bool = False) -> "_Rendering":
        from paceline.models.chat.sandbox.budget import Budget
        from paceline.models.chat.sandbox.interpreter import TemplateRefusalError, run
        from paceline.models.chat.sandbox.text import own

        budget = Budget(0, 0, steps=_PROBE_STEPS) if is_probe else Budget(*size(values))
        tokens = {key: own(token) for key, token in self._tokens.items()}
        try:
            return _Rendering(run(self._program.tree, {**tokens, **values}, budget, self._now), budget.steps)
        except TemplateRefusalError as refusal:
            raise UsageError(f"the chat template refuses these messages: {one_line(refusal)}") from refusal
        except ModelFormatError:
            raise
        except RecursionError as error:
            raise ModelFormatError(f"the chat template nests too deeply; {ADVICE}") from error
        except Exception as error:  # a template is a program and can fail in any way
            raise ModelFormatError(f"the chat template failed: {one_line(error)}; {ADVICE}") from error

    @cached_property
    def _program(self) -> "_Program":
        from paceline.models.chat.sandbox.parsing import names, parse, words

        if len(self.source) > sources.MAX_SOURCE:
            raise ModelFormatError(f"the chat template is longer than {sources.MAX_SOURCE} characters; {ADVICE}")
        try:
            tree = parse(self.source)
            return _Program(tree, names(tree), words(tree))
        except RecursionError as error:
            raise ModelFormatError(f"the chat template nests too deeply to be parsed; {ADVICE}") from error
        except Exception as error:  # Jinja's lexer raises Python's own errors too
            raise ModelFormatError(f"the chat template cannot be parsed: {one_line(error)}; {ADVICE}") from error


class _Program(NamedTuple):
    tree: "nodes.Template"
    names: frozenset[str]
    words: frozenset[str]


class _Rendering(NamedTuple):
    text: str
    num_steps: int
