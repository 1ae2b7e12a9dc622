"""The one thread that touches an engine: messages in, what its steps yield out, and an end that is always announced."""

import atexit
import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread

from paceline.engine.engine import Engine
from paceline.engine.output import FinishReason, StepOutput
from paceline.engine.request import Request

_LOG = logging.getLogger(__name__)
_LEAVE_SECONDS = 10.0  # what the end of the process waits for the step at hand; one that hangs must not hold it up

Event = StepOutput | Exception | int
"""What is told of a request: that it was taken (the id of its sequence), what it yielded, or why it was refused."""
Events = list[tuple[int, Event]]  # by the ticket that whoever submitted the request chose


class EngineThread:
    """Runs `engine` until it is stopped, its event loop is closed, or something raises in it.

    `receive` and `end` are called in the loop: the one with all that a round of messages and a step has to tell, the
    other once, after everything else, with what the thread died of, or None. So nobody waits for ever:

    - Messages are carried out in order, between steps. The thread sleeps only while the inbox is empty, and whoever
      fills it wakes it: a message is read, or the thread ends.
    - Every way out of the thread leads through `end`, and what is handed over earlier arrives earlier. Only a closed
      loop is not told, and nobody can be waiting in it.
    - So whoever looks into the loop after `is_alive` was false, and let it run once, has been told, unless this is
      the child of a fork, in which the thread never was.
    - `stop` and `abort` may be called by finalisers, in any thread and in the middle of anything, the inbox's own work
      included: SimpleQueue is made for that.

    It is a daemon, so that the interpreter does not wait for it for ever, and it is asked to leave at exit, since a
    daemon that comes back from native code while the interpreter is being taken down would bring the process down.
    """

    def __init__(
        self,
        engine: Engine,
        loop: AbstractEventLoop,
        receive: Callable[[Events], None],
        end: Callable[[BaseException | None], None],
    ) -> None:
        self._engine = engine
        self._loop = loop
        self._receive = receive
        self._end = end
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._is_stopping = False
        self._has_run = False  # since integrity was last checked
        self._events: Events = []
        self._sequences: dict[int, int] = {}  # by ticket
        self._tickets: dict[int, int] = {}  # by sequence; both hold what the engine has not ended
        self._thread = Thread(target=self._run, name="paceline-engine", daemon=True)
        self._thread.start()
        atexit.register(self._leave)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def submit(self, ticket: int, request: Request) -> None:
        self._inbox.put(partial(self._add, ticket, request))

    def abort(self, ticket: int) -> None:
        """Its end is told like any other. What has ended, or was refused, is left alone."""
        self._inbox.put(partial(self._abort, ticket))

    def set_held(self, ticket: int, is_held: bool) -> None:
        self._inbox.put(partial(self._set_held, ticket, is_held))

    def stop(self) -> None:
        """Abort everything and end. Stopping twice does nothing."""
        self._inbox.put(self._stop)

    def join(self) -> None:
        """Wait for the thread, which has called `end`, to be gone."""
        self._thread.join()

    def _leave(self) -> None:
        self.stop()
        self._thread.join(_LEAVE_SECONDS)

    def _run(self) -> None:
        cause = None
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001 (everybody is told, and nobody waits for another chance)
            cause = error
        self._call(partial(self._end, cause))  # before anything else that could fail
        if cause is not None:
            _LOG.error("the engine died of %r", cause)
        atexit.unregister(self._leave)

    def _serve(self) -> None:
        is_heard = True
        while is_heard:
            self._read_messages()
            if self._is_stopping:
                break
            if self._engine.has_work:
                self._has_run = True
                for output in self._engine.step():
                    self._tell(self._tickets[output.sequence], output)
            is_heard = self._hand_over()
        for ticket in list(self._sequences):
            self._abort(ticket)
        self._hand_over()

    def _read_messages(self) -> None:
        if not self._engine.has_work and self._inbox.empty():
            if self._has_run and not self._engine.has_unfinished:
                self._engine.step()  # of nothing: an idle engine looks after its integrity
                self._has_run = False
            self._inbox.get()()
        while not self._inbox.empty():  # nobody else takes messages out
            self._inbox.get()()

    def _hand_over(self) -> bool:
        """Whether somebody is there to hear it."""
        if not self._events:
            return not self._loop.is_closed()
        events, self._events = self._events, []
        return self._call(partial(self._receive, events))

    def _call(self, callback: Callable[[], None]) -> bool:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            if self._loop.is_closed():
                return False
            raise
        return True

    def _add(self, ticket: int, request: Request) -> None:
        try:
            sequence = self._engine.add_request(request)
        except Exception as error:  # noqa: BLE001 (its caller gets it; nothing was queued, and others go on)
            self._events.append((ticket, error))
            return
        self._sequences[ticket], self._tickets[sequence] = sequence, ticket
        self._events.append((ticket, sequence))

    def _abort(self, ticket: int) -> None:
        sequence = self._sequences.get(ticket)
        if sequence is not None:
            self._has_run = True
            output = self._engine.abort(sequence)
            self._tell(ticket, output or StepOutput(sequence, finish_reason=FinishReason.ABORT))

    def _set_held(self, ticket: int, is_held: bool) -> None:
        sequence = self._sequences.get(ticket)
        if sequence is not None:
            (self._engine.hold if is_held else self._engine.resume)(sequence)

    def _stop(self) -> None:
        self._is_stopping = True

    def _tell(self, ticket: int, output: StepOutput) -> None:
        self._events.append((ticket, output))
        if output.finish_reason is not None:
            self._sequences.pop(ticket)
            self._tickets.pop(output.sequence)
