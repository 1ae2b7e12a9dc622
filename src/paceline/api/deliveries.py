"""Brings what an engine yields to the requests that it belongs to. Knows no model; an engine may hold on to it."""

from threading import Lock

from paceline.api.collector import Collector
from paceline.api.prefill import PrefillProgress
from paceline.engine import IN_USE, Engine, FinishReason, Request, StepOutput
from paceline.errors import UsageError
from paceline.telemetry import Reason, StepRecord


class Deliveries:
    """The collectors of the requests under way, by sequence."""

    def __init__(self, prefill: PrefillProgress) -> None:
        self._prefill = prefill
        self._lock = Lock()
        self._collectors: dict[int, Collector] = {}

    def submit(self, engine: Engine, request: Request, collector: Collector) -> int:
        """Queue a request whose answer goes to `collector`; returns the id of its sequence."""
        with self._exclusive():
            sequence = engine.add_request(request)
            self._collectors[sequence] = collector
        return sequence

    def step(self, engine: Engine) -> None:
        """Run one engine step and hand out what it yields."""
        with self._exclusive():
            try:
                self.reconcile(engine)
                for sequence in engine.running:
                    self._collectors[sequence].begin_step()
                for output in engine.step():
                    self._deliver(output)
            finally:
                self.reconcile(engine)

    def abort(self, engine: Engine, sequence: int) -> None:
        """Withdraw a request. In the middle of a step it ends with that step."""
        output = engine.abort(sequence)
        if output is not None:
            self._deliver(output)

    def record(self, record: StepRecord) -> None:
        """To be told of every step."""
        for step in record.sequences:
            collector = self._collectors[step.sequence]
            collector.add_record(step)
            if step.reason is Reason.PREFILL:
                self._prefill.advance(step.sequence, len(collector.prompt_ids), record.num_prefill_rows)

    def _exclusive(self) -> Lock:
        """The lock, free. Raises UsageError where it is held: nobody waits for another's step."""
        if self._lock.locked():
            raise UsageError(IN_USE)
        return self._lock

    def reconcile(self, engine: Engine) -> None:
        """End every request of which the engine has given out more than has arrived, or that only one side knows.

        An interrupt can strike between a commit and its delivery. An answer with a hole must not go on.
        """
        for sequence in engine.sequences:
            if sequence not in self._collectors:
                engine.abort(sequence)
        for sequence, collector in list(self._collectors.items()):
            num_emitted = engine.num_emitted(sequence)
            if num_emitted is None:
                self._deliver(StepOutput(sequence, finish_reason=FinishReason.ABORT))
            elif num_emitted != collector.num_tokens:
                self.abort(engine, sequence)

    def _deliver(self, output: StepOutput) -> None:
        if output.finish_reason is not None:
            self._prefill.end(output.sequence)
        collector = self._collectors.get(output.sequence)
        if collector is None:
            return
        collector.add(output)
        if output.finish_reason is not None:
            self._collectors.pop(output.sequence, None)
