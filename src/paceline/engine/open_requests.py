"""The requests of an event loop that its engine has not ended, and the line of those that it may not have yet."""

import asyncio
from collections import deque
from itertools import count

from paceline.engine.engine_thread import EngineThread, Events
from paceline.engine.token_stream import Channel, dead_error


class WaitingLine:
    """Lets `max_inside` in at a time, first come, first served.

    Whoever is let in is counted by the one who lets him in, so nobody slips in between. Nobody waits while there is
    room.
    """

    def __init__(self, max_inside: int) -> None:
        self._max_inside = max_inside
        self._num_inside = 0
        self._line: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        """Inside and in line."""
        return self._num_inside + len(self._line)

    async def enter(self) -> None:
        if self._num_inside < self._max_inside:
            self._num_inside += 1
            return
        future = asyncio.get_running_loop().create_future()
        self._line.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future in self._line:
                self._line.remove(future)
            elif not future.cancelled():  # let in at the same moment
                self.leave()
            raise

    def leave(self) -> None:
        self._num_inside -= 1
        self._let_in(self._max_inside)

    def dissolve(self) -> None:
        """Let everybody in: there is nothing left to wait for."""
        self._let_in(self._num_inside + len(self._line))

    def _let_in(self, max_inside: int) -> None:
        while self._line and self._num_inside < max_inside:
            future = self._line.popleft()
            if not future.done():  # else its caller has been cancelled
                self._num_inside += 1
                future.set_result(None)


class OpenRequests:
    """Only code that runs in the loop touches it.

    A request is here from its submission until the thread has told its end, or the end of all: so `end` reaches every
    one that somebody may be waiting for, and what is not here any more has been told its end.
    """

    def __init__(self, max_waiting: int, max_unread: int) -> None:
        self.line = WaitingLine(max_waiting)
        self.has_ended = asyncio.Event()
        self._cause: BaseException | None = None
        self._max_unread = max_unread
        self._tickets = count()
        self._channels: dict[int, Channel] = {}

    def __len__(self) -> int:
        return len(self._channels)

    def require(self) -> None:
        """Raise EngineDeadError after the end."""
        if self.has_ended.is_set():
            raise dead_error(self._cause)

    def open(self, thread: EngineThread) -> tuple[int, Channel]:
        """A ticket, and the channel for what comes for it. Its place in line is given up by `receive`."""
        ticket = next(self._tickets)
        channel = self._channels[ticket] = Channel(ticket, thread, self._max_unread)
        return ticket, channel

    def receive(self, events: Events) -> None:
        for ticket, event in events:
            channel = self._channels[ticket]
            was_waiting = channel.is_waiting
            channel.put(event)
            if channel.is_ended:
                del self._channels[ticket]
            if was_waiting and not channel.is_waiting:
                self.line.leave()

    def end(self, cause: BaseException | None) -> None:
        """The thread is gone, by `cause` if it did not just stop."""
        self._cause = cause
        self.has_ended.set()
        for channel in self._channels.values():
            channel.fail(dead_error(cause))
        self._channels.clear()
        self.line.dissolve()
