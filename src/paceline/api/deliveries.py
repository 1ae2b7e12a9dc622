"""Brings what an engine yields to the requests that it belongs to. Knows no model; an engine may hold on to it."""

from collections.abc import Set
from threading import Lock

from paceline.api.collector import Collector
from paceline.api.prefill import PrefillProgress
from paceline.engine import IN_USE, Engine, FinishReason, Request, StepOutput
from paceline.errors import UsageError
from paceline.telemetry import SequenceStep, StepRecord


class Deliveries:
    """The collectors of the requests under way, by sequence."""

    def __init__(self, prefill: PrefillProgress) -> None:
        self._prefill = prefill
        self._lock = Lock()
        self._collectors: dict[int, Collector] = {}
        self._read: list[SequenceStep] = []  # of the newest step: the sequences that read some of their prompts
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
                self._read.clear()
                outputs = engine.step()
                for output in outputs:
                    self._deliver(output)
                self._is_open = False
            finally:
                if self._is_open or self._has_withdrawn:
                    self.reconcile(engine)
            self._show_reading({output.sequence for output in outputs if output.finish_reason is not None})

    def abort(self, engine: Engine, sequence: int) -> None:
        """Withdraw a request. In the middle of a step it ends with that step."""
        output = engine.abort(sequence)
        if output is not None:
            self._deliver(output)
            self._prefill.end(sequence)
        elif sequence in self._collectors:
            self._has_withdrawn = True

    def record(self, record: StepRecord) -> None:
        """To be told of every step."""
        self._read += [step for step in record.sequences if step.prefilled]

    def _show_reading(self, ended: Set[int]) -> None:
        """Tell the progress of a step once everybody has what it yielded: it is the caller's, and may raise."""
        for step in self._read:
            collector = self._collectors.get(step.sequence)
            num_prompt_tokens = 0 if collector is None else len(collector.prompt_ids)
            is_last = step.emitted > 0 or step.sequence in ended
            if collector is None or collector.num_tokens == step.emitted:  # else it reads again, after a preemption
                self._prefill.advance(step.sequence, num_prompt_tokens, step.prefilled, is_last)
        for sequence in ended:
            self._prefill.end(sequence)

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
                self._prefill.end(sequence)
            elif num_emitted != collector.num_tokens:
                self.abort(engine, sequence)
        self._is_open = False

    def _deliver(self, output: StepOutput) -> None:
        collector = self._collectors.get(output.sequence)
        if collector is None:
            return
        collector.add(output)
        if output.finish_reason is not None:
            self._collectors.pop(output.sequence, None)
