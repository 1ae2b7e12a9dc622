"""The command line. Importing this package costs nothing; `main` is the entry point."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command in `sys.argv`; ends the process with its exit status."""
    from paceline.cli.app import app

    app(args=sys.argv[1:], prog_name="paceline")
