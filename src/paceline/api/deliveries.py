"""Brings what an engine yields to the requests that it belongs to. Knows no model; an engine may hold on to it."""

from paceline.api.collector import Collector
from paceline.api.prefill import PrefillProgress
from paceline.engine import Engine, FinishReason, StepOutput
from paceline.telemetry import Reason, StepRecord


class Deliveries:
    """The collectors of the requests under way, by sequence."""

    def __init__(self, prefill: PrefillProgress) -> None:
        self._prefill = prefill
        self._collectors: dict[int, Collector] = {}

    def add(self, sequence: int, collector: Collector) -> None:
        self._collectors[sequence] = collector

    def step(self, engine: Engine) -> None:
        """Run one engine step and hand out what it yields."""
        self.reconcile(engine)
        for sequence in engine.running:
            self._collectors[sequence].begin_step()
        for output in engine.step():
            self._deliver(output)
        self.reconcile(engine)

    def abort(self, engine: Engine, sequence: int) -> None:
        """Withdraw a request. In the middle of a step it ends with that step."""
        self._prefill.end()
        output = engine.abort(sequence)
        if output is not None:
            self._deliver(output)

    def record(self, record: StepRecord) -> None:
        """To be told of every step."""
        for step in record.sequences:
            collector = self._collectors[step.sequence]
            collector.add_record(step)
            if step.reason is Reason.PREFILL:
                self._prefill.advance(len(collector.prompt_ids), record.num_prefill_rows)

    def reconcile(self, engine: Engine) -> None:
        """End every request of which the engine has given out more than has arrived, or that it no longer knows.

        An interrupt can strike between a commit and its delivery. An answer with a hole must not go on.
        """
        for sequence, collector in list(self._collectors.items()):
            num_emitted = engine.num_emitted(sequence)
            if num_emitted is None:
                self._deliver(StepOutput(sequence, finish_reason=FinishReason.ABORT))
            elif num_emitted != collector.num_tokens:
                self.abort(engine, sequence)

    def _deliver(self, output: StepOutput) -> None:
        collector = self._collectors.get(output.sequence)
        if collector is None:
            return
        collector.add(output)
        if output.finish_reason is not None:
            self._collectors.pop(output.sequence, None)
