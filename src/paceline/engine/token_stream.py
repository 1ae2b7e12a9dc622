"""One request's outputs between an event loop, which brings them, and the consumer, who may be slow, late or gone."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from paceline.engine.engine_thread import EngineThread, Event
from paceline.engine.output import StepOutput
from paceline.errors import EngineDeadError, UsageError


class Channel:
    """A request as its event loop sees it. Only code that runs in the loop touches it, but for `abort`.

    Whoever waits looks again after every change, and every change wakes all who wait. Nothing is taken out by one who
    may still be cancelled: `take` never waits. The engine is told to hold the sequence and to go on with it in turns,
    and in order, so while nothing is left to read it is never held.

    `is_taken`: the engine has accepted the request, as `sequence`. `is_waiting`: it has yielded nothing yet.
    `is_ended`: nothing will come any more, because of `error` if there is one.
    """

    def __init__(self, ticket: int, thread: EngineThread, max_unread: int) -> None:
        self.is_taken = False
        self.sequence = -1
        self.is_waiting = True
        self.is_ended = False
        self.error: Exception | None = None
        self._ticket = ticket
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._max_unread = max_unread
        self._outputs: deque[StepOutput] = deque()
        self._num_unread = 0
        self._is_held = False
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def has_outputs(self) -> bool:
        return bool(self._outputs)

    def require_loop(self) -> None:
        """Raise UsageError outside the loop; the dead may be read anywhere, a forked child's included."""
        if running_loop() is not self._loop and self._thread.is_alive():
            raise wrong_loop_error()

    def put(self, event: Event) -> None:
        if isinstance(event, Exception):
            self.fail(event)
            return
        self.is_taken = True
        if isinstance(event, int):
            self.sequence = event
        else:
            self._outputs.append(event)
            self._num_unread += len(event.tokens)
            self.is_waiting = False
            self.is_ended = event.finish_reason is not None
            if self._num_unread > self._max_unread and not (self._is_held or self.is_ended):
                self._hold(True)
        self._wake()

    def fail(self, error: Exception) -> None:
        self.error = error
        self.is_waiting, self.is_ended = False, True
        self._wake()

    def take(self) -> StepOutput:
        output = self._outputs.popleft()
        self._num_unread -= len(output.tokens)
        if self._is_held and self._num_unread <= self._max_unread // 2:
            self._hold(False)
        return output

    def abort(self) -> None:
        """Withdraw the request if it has not ended. For finalisers too, in any thread."""
        if not self.is_ended:
            self._thread.abort(self._ticket)

    async def wait(self) -> None:
        """Until something may have changed."""
        if not self._thread.is_alive():
            await asyncio.sleep(0)  # all that it announced has arrived then, its end as the last
            if not self.is_ended:
                self.fail(no_thread_error())
            return
        future = self._loop.create_future()
        self._waiters.append(future)
        try:
            await future
        finally:
            self._waiters.remove(future)

    def _hold(self, is_held: bool) -> None:
        self._is_held = is_held
        self._thread.set_held(self._ticket, is_held)

    def _wake(self) -> None:
        for future in self._waiters:
            if not future.done():
                future.set_result(None)


class TokenStream(AsyncIterator[StepOutput]):
    """What the engine yields for one request, step by step; the last output has a `finish_reason`.

    Leaving early is fine: `aclose`, the end of an `async with` block or the loss of the last reference withdraws the
    request and frees what it holds. A wait that is cancelled, by `asyncio.wait_for` for example, loses nothing and
    withdraws nothing. Raises EngineDeadError once what came before the engine's death has been read.
    """

    def __init__(self, channel: Channel, owner: object) -> None:
        """`owner` lives as long as the stream does."""
        self._channel = channel
        self._owner = owner

    @property
    def sequence(self) -> int:
        """The id of its sequence in the engine."""
        return self._channel.sequence

    async def __anext__(self) -> StepOutput:
        channel = self._channel
        channel.require_loop()
        while not channel.has_outputs:
            if channel.error is not None:
                raise channel.error
            if channel.is_ended:
                raise StopAsyncIteration
            await channel.wait()
        return channel.take()

    def ready(self) -> list[StepOutput]:
        """What has come and was not read, at once."""
        outputs = []
        while self._channel.has_outputs:
            outputs.append(self._channel.take())
        return outputs

    async def aclose(self) -> None:
        """Withdraw the request if it has not ended; what it holds is free then. What has come can still be read."""
        self._channel.require_loop()
        self._channel.abort()
        while not self._channel.is_ended:
            await self._channel.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._channel.abort()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs the caller."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def wrong_loop_error() -> UsageError:
    return UsageError(
        "this engine belongs to another event loop, the one in which it was first used; make another for this one"
    )


def dead_error(cause: BaseException | None) -> EngineDeadError:
    """A new one for everyone who is told. `cause` None: the engine was closed."""
    if cause is None:
        return EngineDeadError("the engine was closed and answers nothing more; make another")
    reason = " ".join(f"{type(cause).__name__}: {cause}".split())
    error = EngineDeadError(
        f"the engine died of {reason}; make another, and please report this if it is no fault of yours"
    )
    error.__cause__ = cause
    return error


def no_thread_error() -> EngineDeadError:
    return EngineDeadError(
        "the engine's thread does not exist in this process, for threads do not survive a fork; make the engine in the "
        "process that uses it"
    )
