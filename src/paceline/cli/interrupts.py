"""Ctrl-C: it ends an answer at the next whole step, and the process at once while that is still importing modules."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

import typer

EXIT_INTERRUPTED = 128 + signal.SIGINT  # as a shell reports it
EXIT_TERMINATED = 128 + signal.SIGTERM


@contextmanager
def interrupts_at_once() -> Iterator[None]:
    """Within its block, which imports modules and has nothing to lose, Ctrl-C ends the process without a word.

    An exception would come up in the middle of an import, where some are swallowed.
    """
    previous = signal.getsignal(signal.SIGINT)
    if previous is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Within its block, which is short and must be finished, Ctrl-C is only noted, however often it comes; behind it
    KeyboardInterrupt is raised. For the main thread."""
    seen = list[int]()
    previous = signal.getsignal(signal.SIGINT)
    if previous is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if seen:
        raise KeyboardInterrupt


@contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Within its block SIGTERM, as `timeout` or a pipeline sends it, does what Ctrl-C does; only the exit status is its
    own. Where Ctrl-C is ignored, SIGTERM ends the process as ever. For the main thread."""
    seen = list[int]()

    def interrupt(number: int, _: FrameType | None) -> None:
        seen.append(number)
        signal.raise_signal(signal.SIGINT)

    previous = signal.getsignal(signal.SIGTERM)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt as error:
        if seen:
            raise typer.Exit(EXIT_TERMINATED) from error
        raise
    finally:
        signal.signal(signal.SIGTERM, previous)


class Interrupts:
    """Within its block Ctrl-C raises KeyboardInterrupt only until `hold` is called, and after that sets `is_pending`.

    A second Ctrl-C raises always. Where the process was told to ignore Ctrl-C, it stays ignored. For the main thread.
    """

    def __init__(self) -> None:
        self.is_pending = False
        self._is_held = False

    def hold(self) -> None:
        """From now on there is something to lose: the caller looks at `is_pending` between steps."""
        self._is_held = True

    def __enter__(self) -> Self:
        self._previous = signal.getsignal(signal.SIGINT)
        if self._previous is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_pending or not self._is_held:
            raise KeyboardInterrupt
        self.is_pending = True
