"""`paceline chat`: a conversation, turn by turn, on a terminal or from a pipe."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

from paceline import LLM, PacelineError, SamplingParams, UsageError
from paceline.cli.failures import EXIT_FAILURE, complain
from paceline.cli.generate import follow, summary
from paceline.cli.loading import decode, load, standard_input
from paceline.cli.options import ModelOptions
from paceline.cli.terminal import AnswerWriter
from paceline.models.quoting import quoted

if TYPE_CHECKING:
    from paceline.models import Message


class Command(StrEnum):
    """What a line must be, all of it, not to be a message."""

    CLEAR = "/clear"
    EXIT = "/exit"


_PROMPT = "> "
_WELCOME = "Type a message. /clear forgets the conversation, /exit or Ctrl-D ends it, Ctrl-C stops an answer."


def chat(options: ModelOptions, params: SamplingParams, *, show_drafts: bool) -> None:
    """Talk until the input ends."""
    stdin = standard_input()
    llm = load(options)
    if not llm.has_chat_template:
        raise UsageError(
            "this model has no chat template, as base models have none: continue a text with `paceline generate "
            "--no-chat`, or give a template with --chat-template FILE"
        )
    conversation = Conversation(llm, params, show_drafts=show_drafts)
    if not stdin.isatty():
        while (line := stdin.buffer.readline()) and conversation.take(decode(line, "standard input")):
            pass
        return
    _enable_line_editing()
    typer.echo(_WELCOME, err=True)
    while _take_from_terminal(conversation):
        pass


class Conversation:
    """The messages so far, and what answers the next one."""

    def __init__(self, llm: LLM, params: SamplingParams, *, show_drafts: bool) -> None:
        self._llm = llm
        self._params = params
        self._show_drafts = show_drafts
        self._messages: list[Message] = []

    def take(self, line: str) -> bool:
        """Answer a line or obey it; False where it ends the conversation."""
        match line.strip():
            case "":
                return True
            case Command.EXIT:
                return False
            case Command.CLEAR:
                self._messages.clear()
                return True
            case text:
                self._answer(text)
                return True

    def _answer(self, text: str) -> None:
        messages: list[Message] = [*self._messages, {"role": "user", "content": text}]
        stream = self._llm.stream(messages, self._params)
        output = follow(stream, AnswerWriter(show_drafts=self._show_drafts))
        if sys.stderr.isatty():
            typer.echo(summary(output), err=True)
        if output.finish_reason == "error":
            complain("the model computed numbers that are not finite. Check the model file")
            raise typer.Exit(EXIT_FAILURE)
        self._messages = [*messages, {"role": "assistant", "content": output.text}]


def _take_from_terminal(conversation: Conversation) -> bool:
    """One line; what is wrong with it is told, and the conversation goes on as if it had not been typed."""
    try:
        line = _read_line()
        if _is_unknown_command(line):
            complain(f"unknown command {quoted(line.strip())}; there are /clear and /exit")
            return True
        return conversation.take(line)
    except EOFError:
        typer.echo(err=True)
        return False
    except KeyboardInterrupt:
        typer.echo(err=True)  # what the terminal echoed for it ends here, not in the user's next prompt
        raise
    except UnicodeDecodeError:
        complain("this line is not valid UTF-8")
    except PacelineError as error:
        complain(f"{error}; /clear begins anew")
    return True


def _is_unknown_command(line: str) -> bool:
    """Whether somebody at a terminal meant a command that does not exist; in a pipe it is text like any other."""
    word = line.strip()
    return word.startswith("/") and word[1:].isalpha() and word not in list(Command)


def _read_line() -> str:
    if sys.stdout.isatty():
        return input(_PROMPT)
    sys.stderr.write(_PROMPT)  # standard output belongs to the answers
    sys.stderr.flush()
    return input()


def _enable_line_editing() -> None:
    try:
        import readline  # noqa: F401 (`input` uses it once it is imported)
    except ImportError:  # Python can be built without it
        return
