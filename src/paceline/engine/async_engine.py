"""An engine for asyncio: one thread that computes, and a stream of tokens for every request."""

import asyncio
import weakref
from types import TracebackType
from typing import Self

from paceline.checks import check_integer
from paceline.engine.engine import Engine
from paceline.engine.engine_thread import EngineThread
from paceline.engine.open_requests import OpenRequests
from paceline.engine.request import Request
from paceline.engine.stats import EngineStats
from paceline.engine.token_stream import TokenStream, no_thread_error, running_loop, wrong_loop_error
from paceline.errors import UsageError

DEFAULT_MAX_WAITING = 256
DEFAULT_MAX_BUFFERED_TOKENS = 256


class AsyncEngine:
    """Takes `engine` over: a thread of its own is the only one to touch it from now on. Belongs to the event loop in
    which it is made, and is used by coroutines of that loop only.

    `max_waiting`: requests that the engine has and has not answered with a token yet. They are what a new one waits
    behind, so this bounds the engine's queue and not the number of streams: whoever has begun to read is not counted,
    and a consumer that stops reading keeps nobody out. `add_request` waits while there are so many, first come, first
    served; priorities count among those that the engine has.

    `max_buffered_tokens`: a stream of which more are unread is left out of steps until half of them are read. What is
    on its way by then still comes. Others run on, and the tokens are the same.

    Whatever raises in the thread, but for a request that is refused, is the engine's death. Every stream and every
    `add_request` then raises EngineDeadError, whose `__cause__` it is.

    An engine that is forgotten ends with its last stream, and at the latest when the process does.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        max_waiting: int = DEFAULT_MAX_WAITING,
        max_buffered_tokens: int = DEFAULT_MAX_BUFFERED_TOKENS,
    ) -> None:
        """Raises UsageError where no event loop is running, and for an engine that has requests already."""
        check_integer("max_waiting", max_waiting, 1)
        check_integer("max_buffered_tokens", max_buffered_tokens, 1)
        loop = running_loop()
        if loop is None:
            raise UsageError("no event loop is running; make an AsyncEngine in a coroutine, it belongs to its loop")
        if engine.has_unfinished:
            raise UsageError("the engine has requests already; hand it over before it has any")
        self._engine = engine
        self._loop = loop
        self._requests = OpenRequests(max_waiting, max_buffered_tokens)
        # Neither of the two knows this object: it can be collected while they are busy, and then stops them.
        self._thread = EngineThread(engine, loop, self._requests.receive, self._requests.end)
        weakref.finalize(self, self._thread.stop).atexit = False

    @property
    def max_length(self) -> int:
        """The most tokens that prompt and answer may have together."""
        return self._engine.max_length

    @property
    def num_open(self) -> int:
        """Requests that the engine has and has not ended."""
        return len(self._requests)

    @property
    def num_waiting(self) -> int:
        """Requests without a token so far, those included that still wait for their turn in `add_request`."""
        return len(self._requests.line)

    @property
    def is_alive(self) -> bool:
        """Whether requests can be answered."""
        return self._thread.is_alive() and not self._requests.has_ended.is_set()

    def stats(self) -> EngineStats:
        """A snapshot, for any thread."""
        return self._engine.stats()

    async def add_request(self, request: Request) -> TokenStream:
        """Queue `request`, after waiting for its turn; its tokens come through the stream.

        Raises UsageError for a request that could not run, UnsoundEngineError where no answer could be trusted,
        EngineDeadError after the engine's death or end. A call that is cancelled leaves nothing behind.
        """
        await self._require()
        await self._requests.line.enter()
        self._requests.require()
        ticket, channel = self._requests.open(self._thread)
        self._thread.submit(ticket, request)
        stream = TokenStream(channel, self)
        try:
            while not channel.is_taken:
                if channel.error is not None:
                    raise channel.error
                await channel.wait()
        except BaseException:
            channel.abort()
            raise
        return stream

    async def close(self) -> None:
        """Withdraw all requests and end the thread. Their streams end with the finish reason "abort"; calls that still
        wait for their turn raise EngineDeadError. Closing twice, or after the engine's death, does nothing.
        """
        if self._thread.is_alive():
            self._require_loop()
            self._thread.stop()
            await self._requests.has_ended.wait()
            self._thread.join()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _require(self) -> None:
        """Raise EngineDeadError where the thread is gone, UsageError outside the loop."""
        if not self._thread.is_alive():
            await asyncio.sleep(0)  # its end has been announced then
            self._requests.require()
            raise no_thread_error()
        self._require_loop()
        self._requests.require()

    def _require_loop(self) -> None:
        if running_loop() is not self._loop:
            raise wrong_loop_error()
