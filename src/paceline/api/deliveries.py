"""Brings what an engine yields to the requests that it belongs to. Knows no model; an engine may hold on to it."""

from threading import Lock

from paceline.api.collector import Collector
from paceline.api.prefill import PrefillProgress
from paceline.engine import IN_USE, Engine, FinishReason, Request, StepOutput
from paceline.errors import UsageError
from paceline.telemetry import StepRecord


class Deliveries:
    """The collectors of the requests under way, by sequence."""

    def __init__(self, prefill: PrefillProgress) -> None:
        self._prefill = prefill
        self._lock = Lock()
        self._collectors: dict[int, Collector] = {}
        self._is_open = False  # something was begun and not finished: the two sides may differ
        self._has_withdrawn = False  # the engine ends a sequence by itself when its step is done

    def submit(self, engine: Engine, request: Request, collector: Collector) -> int:
        """Queue a request whose answer goes to `collector`; returns the id of its sequence."""
        with self._exclusive():
            was_open, self._is_open = self._is_open, True
            sequence = engine.add_request(request)
            self._collectors[sequence] = collector
            self._is_open = was_open  # what an earlier call left open still is
        return sequence

    def step(self, engine: Engine) -> None:
        """Run one engine step and hand out what it yields."""
        with self._exclusive():
            try:
                if self._is_open or self._has_withdrawn:
                    self.reconcile(engine)
                self._is_open = True
                for output in engine.step():
                    self._deliver(output)
                self._is_open = False
            finally:
                if self._is_open or self._has_withdrawn:
                    self.reconcile(engine)

    def abort(self, engine: Engine, sequence: int) -> None:
        """Withdraw a request. In the middle of a step it ends with that step."""
        output = engine.abort(sequence)
        if output is not None:
            self._deliver(output)
        elif sequence in self._collectors:
            self._has_withdrawn = True

    def record(self, record: StepRecord) -> None:
        """To be told of every step."""
        for step in record.sequences:
            collector = self._collectors[step.sequence]
            if step.prefilled and not collector.num_tokens:  # else a preemption made it read the prompt again
                is_last = step.emitted > 0
                self._prefill.advance(step.sequence, len(collector.prompt_ids), step.prefilled, is_last)

    def _exclusive(self) -> Lock:
        """The lock, free. Raises UsageError where it is held: nobody waits for another's step."""
        if self._lock.locked():
            raise UsageError(IN_USE)
        return self._lock

    def reconcile(self, engine: Engine) -> None:
        """End every request of which the engine has given out more than has arrived, or that only one side knows.

        An interrupt can strike between a commit and its delivery. An answer with a hole must not go on.
        """
        self._is_open, self._has_withdrawn = True, False
        for sequence in engine.sequences:
            if sequence not in self._collectors:
                engine.abort(sequence)
        for sequence, collector in list(self._collectors.items()):
            num_emitted = engine.num_emitted(sequence)
            if num_emitted is None:
                self._deliver(StepOutput(sequence, finish_reason=FinishReason.ABORT))
            elif num_emitted != collector.num_tokens:
                self.abort(engine, sequence)
        self._is_open = False

    def _deliver(self, output: StepOutput) -> None:
        if output.finish_reason is not None:
            self._prefill.end(output.sequence)
        collector = self._collectors.get(output.sequence)
        if collector is None:
            return
        collector.add(output)
        if output.finish_reason is not None:
            self._collectors.pop(output.sequence, None)
