"""An event loop whose time passes only while everything waits, so that what is timed in it comes out exactly."""

import asyncio
from collections.abc import Coroutine
from selectors import SelectorKey, SelectSelector
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`loop.time` is the clock, in seconds from 0: what runs takes none of it, and where all tasks wait it jumps to the
    first moment that one of them waits for. For tasks that wait for each other and for time alone: time would run ahead
    of bytes in a socket and of other threads.
    """

    def __init__(self) -> None:
        self._selector_of_time = _JumpingSelector()
        super().__init__(self._selector_of_time)

    def time(self) -> float:
        return self._selector_of_time.now


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in a `VirtualTimeLoop`."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)


class _JumpingSelector(SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Without a timeout nothing waits for time: only a thread can wake the loop, or nothing at all."""
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready and timeout > 0:
            self.now += timeout
        return ready
