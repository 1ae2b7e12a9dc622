"""The command line. Importing this package costs nothing; `main` is the entry point."""

import io
import signal
import sys
from types import FrameType

__all__ = ["main"]


def main() -> None:
    """Run the command in `sys.argv`; ends the process with its exit status."""
    signal.signal(signal.SIGTERM, _exit_on_signal)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a character that the terminal cannot show must not end the program
    try:
        from paceline.cli.app import app

        app(args=sys.argv[1:], prog_name="paceline")
    except KeyboardInterrupt:  # while a command was being imported
        sys.exit(130)


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # unwinds, so that the terminal and temporary files are left in order
