"""Ctrl-C: it ends an answer at the next whole step, and the process at once while that is still importing modules."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

EXIT_INTERRUPTED = 128 + signal.SIGINT  # as a shell reports it


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
