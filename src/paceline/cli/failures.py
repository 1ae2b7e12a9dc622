"""What a command does when it cannot go on: one line on standard error and an exit status, a traceback on request."""

import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from paceline.cli.interrupts import EXIT_INTERRUPTED
from paceline.errors import PacelineError, PacelineWarning

EXIT_FAILURE = 1
EXIT_BROKEN_PIPE = 141
_DEBUG_KEY = "paceline.debug"
_OPTIONS = {
    "burstiness": "--burstiness",
    "concurrency": "--concurrency",
    "duration": "--duration",
    "max_model_len": "--max-model-len",
    "max_tokens": "--max-tokens",
    "min_p": "--min-p",
    "min_tokens": "--min-tokens",
    "modes": "--modes",
    "num_prompts": "--num-prompts",
    "num_speculative_tokens": "--num-speculative-tokens",
    "num_threads": "--threads",
    "quantization": "--quantization",
    "request_rate": "--request-rate",
    "require": "--require",
    "rounds": "--rounds",
    "seed": "--seed",
    "slo": "--slo",
    "temperature": "--temperature",
    "top_k": "--top-k",
    "top_p": "--top-p",
    "chat_template": "--chat-template",
    "num_samples": "--samples",
    "false_alarm_rate": "--false-alarm-rate",
    "numerics": "--numerics",
}  # parameters of the library, and the options that stand for them
_PARAMETER = re.compile(rf"(?<![^\s(])({'|'.join(_OPTIONS)})(?![^\s,;:.)])")  # as a word, not in quotes or a path


def remember_debug(context: typer.Context, value: bool) -> bool:
    """For an option that may be given to the program or to the command: true in the command if given to either."""
    is_debug = value or bool(context.meta.get(_DEBUG_KEY, False))
    context.meta[_DEBUG_KEY] = is_debug
    return is_debug


def complain(message: str) -> None:
    """One line on standard error."""
    from paceline.models.quoting import readable  # here, not above: a help text must not wait for its package

    typer.echo(f"paceline: {' '.join(readable(message).split())}", err=True)


def exit_status(program: Callable[[], object], *, debug: bool) -> int:
    """Run the whole program. Its own exit, and whatever its commands do not catch, become an exit status."""
    if sys.stdout is None:  # whoever started this process has closed it
        complain("standard output is closed, so there is nowhere to write to; give it a file, a pipe or a terminal")
        return EXIT_FAILURE
    try:
        with reported_warnings(), reported_failures(debug):
            program()
    except typer.Exit as end:
        return end.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@contextmanager
def reported_warnings() -> Iterator[None]:
    """Show this package's warnings as lines like its failures, each once; others as Python does."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_ours(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, PacelineWarning):
                complain(str(message))
            else:
                show(message, category, filename, lineno, file, line)

        warnings.simplefilter("once", PacelineWarning)
        warnings.showwarning = show_ours
        yield


@contextmanager
def reported_failures(debug: bool) -> Iterator[None]:
    """Turn what a command raises into a line and an exit status."""
    try:
        yield
        sys.stdout.flush()
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError as error:
        _abandon_output()
        raise typer.Exit(EXIT_BROKEN_PIPE) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(EXIT_INTERRUPTED) from error
    except Exception as error:
        if debug:
            raise
        complain(explanation(error))
        raise typer.Exit(error.exit_status if isinstance(error, PacelineError) else EXIT_FAILURE) from error


def explanation(error: Exception) -> str:
    match error:
        case PacelineError():
            return _PARAMETER.sub(lambda match: _OPTIONS[match[0]], str(error))
        case MemoryError():
            return "not enough memory; choose a smaller --max-model-len or a smaller model"
        case OSError(errno=errno.ENOSPC, filename=None):
            return "no space left on the device for standard output; free some, or write elsewhere"
        case OSError():
            return str(error)
        case _:
            return f"unexpected {type(error).__name__}: {error}; run again with --debug for the traceback"


def _abandon_output() -> None:
    """Nobody reads our output any more: let the interpreter's last flush go nowhere."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 (not a path of ours)
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
