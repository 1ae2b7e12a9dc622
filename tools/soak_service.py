"""What a soak needs of whatever serves its requests, and an engine that is stepped by the caller as that."""

from collections.abc import Callable
from typing import Protocol

from paceline.acceptance import create_acceptance_rule
from paceline.controller import FixedController, OffController
from paceline.engine import Engine, EngineOptions, EngineStats, Request, StepOutput
from paceline.models import Tokenizer
from paceline.proposers import NgramProposer
from paceline.runtime import Runtime
from paceline.telemetry import StepRecord


class Service(Protocol):
    """Serves requests, by the number that `submit` returns. `poll` waits for something to happen, if anything can."""

    def submit(self, request: Request) -> int: ...

    def cancel(self, number: int) -> None: ...

    def preempt(self, number: int) -> None: ...

    def set_read(self, number: int, is_read: bool) -> None:
        """Whether the consumer keeps up."""
        ...

    def poll(self) -> list[StepOutput]: ...

    def stats(self) -> EngineStats: ...

    def check_integrity(self) -> None:
        """Raises IntegrityError."""
        ...

    def sizes(self) -> dict[str, int]:
        """Of everything that could grow."""
        ...


class SteppedEngine:
    """One step for each `poll`."""

    def __init__(self, runtime: Runtime, tokenizer: Tokenizer, records: Callable[[StepRecord], None]) -> None:
        self._ngram = NgramProposer()
        self._engine = make_engine(runtime, tokenizer, self._ngram, EngineOptions(max_num_seqs=8), records)
        self._withdrawn: list[StepOutput] = []

    def submit(self, request: Request) -> int:
        return self._engine.add_request(request)

    def cancel(self, number: int) -> None:
        output = self._engine.abort(number)
        if output is not None:
            self._withdrawn.append(output)

    def preempt(self, number: int) -> None:
        self._engine.preempt(number)

    def set_read(self, number: int, is_read: bool) -> None:
        (self._engine.resume if is_read else self._engine.hold)(number)

    def poll(self) -> list[StepOutput]:
        withdrawn, self._withdrawn = self._withdrawn, []
        return [*withdrawn, *self._engine.step()]

    def stats(self) -> EngineStats:
        return self._engine.stats()

    def check_integrity(self) -> None:
        self._engine.check_integrity()

    def sizes(self) -> dict[str, int]:
        engine, cache = self._engine, self._engine._cache._target
        return {
            "free pages": engine.num_free_pages,
            "sequences": len(engine.sequences),
            "cached sequences": len(cache.sequences),
            "published pages": len(list(cache._index)),  # type: ignore[attr-defined]
            "namespaces": len(cache._index._roots),  # type: ignore[attr-defined]
            "followed sequences": len(self._ngram._indexes),
        }


def make_engine(
    runtime: Runtime,
    tokenizer: Tokenizer,
    proposer: NgramProposer | None,
    options: EngineOptions,
    records: Callable[[StepRecord], None] | None = None,
) -> Engine:
    """A plain one without a proposer."""
    return Engine(
        runtime,
        OffController() if proposer is None else FixedController(proposer.name, 4),
        [] if proposer is None else [proposer],
        create_acceptance_rule("match"),
        eos_token_ids=tokenizer.stop_ids,
        banned_token_ids=tokenizer.unproducible_ids,
        token_text=tokenizer.text_bytes,
        options=options,
        records=records,
    )


def answer_alone(runtime: Runtime, tokenizer: Tokenizer, request: Request) -> tuple[tuple[int, ...], StepOutput]:
    """Plainly, by a fresh engine that reuses nothing: the tokens and the last output."""
    engine = make_engine(runtime, tokenizer, None, EngineOptions(max_num_seqs=1, reuses_prefixes=False))
    engine.add_request(request)
    tokens: tuple[int, ...] = ()
    output = None
    while engine.has_unfinished:
        for output in engine.step():
            tokens += output.tokens
    assert output is not None
    return tokens, output
