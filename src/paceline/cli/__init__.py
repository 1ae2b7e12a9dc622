"""The command line. Importing this package costs nothing; `main` is the entry point."""

import codecs
import io
import os
import signal
import sys
from types import FrameType

__all__ = ["main"]


def main() -> None:
    """Run the command in `sys.argv`; ends the process with its exit status."""
    status = 128 + signal.SIGINT  # should it come before anything else
    try:
        from paceline.cli.interrupts import interrupts_at_once

        with interrupts_at_once():
            _prepare_signals()
            _prepare_streams()
            from paceline.cli.app import app
            from paceline.cli.failures import exit_status
        status = exit_status(lambda: app(args=sys.argv[1:], prog_name="paceline"), debug="--debug" in sys.argv)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is written: nothing is left to interrupt but the goodbye
    sys.exit(status)


def _prepare_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` has it
            signal.signal(number, _exit_on_signal)


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # unwinds, so that the terminal and temporary files are left in order


def _prepare_streams() -> None:
    """Make sure that there are streams to write to, and that any character can be written."""
    if sys.stdin is None:
        os.open(
            os.devnull, os.O_RDONLY
        )  # no file of ours may become standard input; `standard_input` says it is closed
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (lives as long as the process)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"  # no locale is set: what is written is UTF-8
            stream.reconfigure(encoding="utf-8" if is_ascii else None, errors="replace")
