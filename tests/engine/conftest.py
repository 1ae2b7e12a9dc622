"""An engine over a table, and everything that it did, with its integrity checked after every step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from paceline.acceptance import MatchRule
from paceline.controller import Controller, OffController
from paceline.engine import Engine, EngineOptions, FinishReason, Request, StepOutput
from paceline.proposers import Proposer
from paceline.runtime import Runtime
from paceline.sampling_params import SamplingParams
from paceline.telemetry import StepRecord

MAX_STEPS = 500


@dataclass
class Run:
    """One request from start to end."""

    tokens: list[int] = field(default_factory=list)
    is_draft: list[bool] = field(default_factory=list)
    outputs: list[StepOutput] = field(default_factory=list)
    records: list[StepRecord] = field(default_factory=list)
    finish_reason: FinishReason | None = None

    @property
    def result(self) -> tuple[list[int], FinishReason | None]:
        return self.tokens, self.finish_reason


@pytest.fixture(scope="session")
def run_one() -> Callable[..., Run]:
    return _run_one


def _run_one(
    runtime: Runtime,
    prompt: Sequence[int],
    params: SamplingParams,
    controller: Controller | None = None,
    proposers: Sequence[Proposer] = (),
    eos: Sequence[int] = (),
    prefill_chunk: int = 256,
) -> Run:
    run = Run()
    engine = Engine(
        runtime,
        controller or OffController(),
        proposers,
        MatchRule(),
        eos_token_ids=eos,
        options=EngineOptions(prefill_chunk=prefill_chunk),
        records=run.records.append,
    )
    sequence = engine.add_request(Request(prompt, params))
    while engine.has_unfinished:
        assert len(run.records) < MAX_STEPS, "the sequence does not end"
        for output in engine.step():
            assert output.sequence == sequence
            assert run.finish_reason is None
            assert len(output.tokens) == len(output.is_draft)
            run.outputs.append(output)
            run.tokens += output.tokens
            run.is_draft += output.is_draft
            run.finish_reason = output.finish_reason
        engine.check_integrity()
    assert engine.num_free_pages == runtime.info.num_pages
    return run
