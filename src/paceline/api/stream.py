"""An answer as it is written."""

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from paceline.api.collector import Collector
from paceline.api.outputs import Piece, RequestOutput


class Stream(Iterator[Piece]):
    """Iterate over it for the pieces of an answer, then ask for `output()`.

    Leaving early is fine: `close`, the end of a `with` block or the loss of the last reference withdraws the request
    and frees what it holds; `output()` is then the answer so far.
    """

    def __init__(self, collector: Collector, step: Callable[[], None], abort: Callable[[], None]) -> None:
        self._collector = collector
        self._step = step
        self._abort = abort

    def __next__(self) -> Piece:
        while not self._collector.pending:
            if self._collector.finish_reason is not None:
                raise StopIteration
            self._step()
        return self._collector.pending.popleft()

    def close(self) -> None:
        """Withdraw the request if it has not ended. Closing twice does nothing."""
        if self._collector.finish_reason is None:
            self._abort()

    def output(self) -> RequestOutput:
        return self._collector.output()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
