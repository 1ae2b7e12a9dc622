"""An answer as it is written, for asyncio."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from paceline.api.collector import Collector
from paceline.api.outputs import Piece, RequestOutput
from paceline.engine import FinishReason, StepOutput, TokenStream
from paceline.engine.token_stream import running_loop, wrong_loop_error


class AsyncStream(AsyncIterator[Piece]):
    """Iterate over it for the pieces of an answer, then ask for `output()`.

    Leaving early is fine: `aclose`, the end of an `async with` block or the loss of the last reference withdraws the
    request and frees what it holds; `output()` is then the answer so far. A wait that is cancelled, by
    `asyncio.wait_for` for example, loses nothing and withdraws nothing.

    What is wrong with the request is raised by `async with`, or by the first piece that is asked for.
    """

    def __init__(self, start: asyncio.Task[TokenStream], collector: Collector) -> None:
        """`start` submits the request; its outputs go to `collector`, as they are asked for."""
        self._start = start
        self._collector = collector
        start.add_done_callback(_look_at)

    async def __anext__(self) -> Piece:
        collector = self._collector
        while not collector.pending:
            if collector.finish_reason is not None:
                raise StopAsyncIteration
            tokens = await self._tokens()
            collector.add(await anext(tokens) if tokens is not None else _ABORT)
        return collector.pending.popleft()

    async def aclose(self) -> None:
        """Withdraw the request if it has not ended; what it holds is free then. Closing twice does nothing."""
        start = self._start
        if not start.done():
            self._require_loop()
            start.cancel()
            await asyncio.wait([start])
        if self._has_begun:
            await start.result().aclose()
        self._collect()
        if self._collector.finish_reason is None:
            self._collector.add(_ABORT)

    def output(self) -> RequestOutput:
        """The answer; of a request that has not ended, what there is of it, with the finish reason "abort"."""
        self._collect()
        return self._collector.output()

    async def _tokens(self) -> TokenStream | None:
        """None for a request that was withdrawn before it began. Raises what is wrong with it."""
        start = self._start
        if not start.done():
            self._require_loop()
            await asyncio.wait([start])  # to cancel this does not cancel the start
        return None if start.cancelled() else start.result()

    @property
    def _has_begun(self) -> bool:
        start = self._start
        return start.done() and not start.cancelled() and start.exception() is None

    def _collect(self) -> None:
        """What has come and was not asked for."""
        if self._has_begun:
            for output in self._start.result().ready():
                self._collector.add(output)

    def _require_loop(self) -> None:
        if self._start.get_loop() is not running_loop():
            raise wrong_loop_error()

    async def __aenter__(self) -> Self:
        await self._tokens()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if not self._start.done():
            with suppress(RuntimeError):  # the loop is closed, and nothing runs in it
                self._start.get_loop().call_soon_threadsafe(self._start.cancel)


_ABORT = StepOutput(-1, finish_reason=FinishReason.ABORT)


def _look_at(start: asyncio.Task[TokenStream]) -> None:
    """Whether or not anybody asks for it, an error of the start is no defect to be logged."""
    if not start.cancelled():
        start.exception()
