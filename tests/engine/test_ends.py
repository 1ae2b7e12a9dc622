"""Where a sequence ends, and why: the same with speculation as without, at every place that an end can fall on."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paceline.acceptance import MatchRule
from paceline.controller import FixedController, OffController
from paceline.engine import Engine, FinishReason, Request
from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams
from paceline.telemetry import SpeculationStats, StepRecord
from paceline.testing import ScriptedDraft, ScriptedProposer, TableModel, seeded_table

RunOne = Callable[..., Any]  # see conftest.py
Script = Callable[[tuple[int, ...], int], ScriptedDraft]

COUNTING = 40  # a model that counts: token t is followed by t + 1


def counting(seen: tuple[int, ...]) -> NDArray[np.float32]:
    row = seeded_table(COUNTING)((0,))
    row[(seen[-1] + 1) % COUNTING] = 9
    return row


def right(context: tuple[int, ...], num: int) -> ScriptedDraft:
    return ScriptedDraft(tuple((context[-1] + 1 + i) % COUNTING for i in range(num)))


def right_tree(context: tuple[int, ...], num: int) -> ScriptedDraft:
    """Every right token behind a wrong sibling."""
    last, tokens, parents, parent = context[-1], [], [], -1
    for i in range(num):
        wrong = i % 2 == 0
        tokens.append(0 if wrong else (last := last + 1) % COUNTING)
        parents.append(parent)
        parent = parent if wrong else i
    return ScriptedDraft(tuple(tokens), tuple(parents))


SCRIPTS = pytest.mark.parametrize("script", [right, right_tree])


@SCRIPTS
@pytest.mark.parametrize("stop", range(4, 14))
def test_stop_token_at_every_index(run_one: RunOne, stop: int, script: Script) -> None:
    for params, eos in ((SamplingParams(30), [stop]), (SamplingParams(30, stop_token_ids=[stop]), [])):
        run = run_one(
            TableModel(counting, COUNTING),
            (2, 3),
            params,
            FixedController("scripted", 6),
            [ScriptedProposer(script)],
            eos,
        )
        assert run.result == (list(range(4, stop + 1)), FinishReason.STOP)


@SCRIPTS
@pytest.mark.parametrize("limit", range(1, 12))
def test_limit_at_every_index(run_one: RunOne, limit: int, script: Script) -> None:
    run = run_one(
        TableModel(counting, COUNTING),
        (2, 3),
        SamplingParams(limit),
        FixedController("scripted", 6),
        [ScriptedProposer(script)],
    )
    assert run.result == (list(range(4, 4 + limit)), FinishReason.LENGTH)


@pytest.mark.parametrize(("stop", "limit"), list(product(range(4, 12), range(1, 10))))
def test_stop_and_limit(run_one: RunOne, stop: int, limit: int) -> None:
    """Whichever comes first; at the same token it is a stop."""
    run = run_one(
        TableModel(counting, COUNTING),
        (2, 3),
        SamplingParams(limit),
        FixedController("scripted", 4),
        [ScriptedProposer(right)],
        [stop],
    )
    num_to_stop = stop - 3
    expected = FinishReason.STOP if num_to_stop <= limit else FinishReason.LENGTH
    assert run.result == (list(range(4, 4 + min(num_to_stop, limit))), expected)


def test_tokens_behind_a_stop_count_nowhere() -> None:
    """The target agreed with six draft tokens; the three that were emitted are all that counts."""
    engine_records = list[StepRecord]()
    engine = Engine(
        TableModel(counting, COUNTING),
        FixedController("scripted", 6),
        [ScriptedProposer(right)],
        MatchRule(),
        eos_token_ids=[7],
        records=engine_records.append,
    )
    engine.add_request(Request((2, 3), SamplingParams(30)))
    outputs = [output for _ in range(2) for output in engine.step()]
    assert outputs[1].tokens == (5, 6, 7)
    assert outputs[1].is_draft == (True, True, True)
    (step,) = engine_records[1].sequences
    assert (step.planned, step.drafted, step.accepted, step.emitted, step.discarded) == (6, 6, 6, 3, 4)
    stats = SpeculationStats()
    stats.add(engine_records[1])
    assert (stats.num_emitted, stats.num_accepted_tokens, stats.mean_acceptance_length) == (3, 3, 3.0)


def test_ignore_eos_keeps_own_stop_tokens(run_one: RunOne) -> None:
    params = SamplingParams(30, stop_token_ids=[9], ignore_eos=True)
    run = run_one(TableModel(counting, COUNTING), (2, 3), params, eos=[6])
    assert run.result == (list(range(4, 10)), FinishReason.STOP)


@SCRIPTS
@pytest.mark.parametrize("k", [1, 3, 6, 50])
@pytest.mark.parametrize("prompt_length", [1, 5, 11, 15])
@pytest.mark.parametrize("max_tokens", [None, 4, 500])
def test_capacity(run_one: RunOne, k: int, prompt_length: int, max_tokens: int | None, script: Script) -> None:
    """Prompt and answer together have max_length tokens, with and without drafts, pages full to the last slot."""
    prompt = range(prompt_length)
    expected = min(16 - prompt_length, max_tokens or 500)
    for controller in (OffController(), FixedController("scripted", k)):
        runtime = TableModel(counting, COUNTING, max_length=16, page_size=4, num_pages=4)
        run = run_one(runtime, prompt, SamplingParams(max_tokens), controller, [ScriptedProposer(script)])
        assert run.result == (list(range(prompt_length, prompt_length + expected)), FinishReason.LENGTH)


def test_pages_bound_the_capacity_too(run_one: RunOne) -> None:
    runtime = TableModel(counting, COUNTING, max_length=64, page_size=4, num_pages=3)
    run = run_one(runtime, (0, 1), SamplingParams(None), FixedController("scripted", 5), [ScriptedProposer(right)])
    assert run.result == (list(range(2, 12)), FinishReason.LENGTH)


def test_rows_of_a_forward_bound_the_draft(run_one: RunOne) -> None:
    runtime = TableModel(counting, COUNTING, max_rows=5, max_logits_rows=3)
    run = run_one(runtime, range(9), SamplingParams(12), FixedController("scripted", 9), [ScriptedProposer(right)])
    assert run.tokens == list(range(9, 21))
    assert max(record.num_draft_rows for record in run.records) == 2
    assert [record.num_prefill_rows for record in run.records[:3]] == [5, 4, 0]


@SCRIPTS
@pytest.mark.parametrize("nan_at", [1, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_logits_that_are_not_finite(run_one: RunOne, nan_at: int, k: int, script: Script) -> None:
    """In the prompt's last row, a draft's first, a middle or the last one: what was decided before it stands."""
    runtime = TableModel(counting, COUNTING, nan_at=[nan_at])
    controller = FixedController("scripted", k) if k else OffController()
    run = run_one(runtime, (2, 3), SamplingParams(30), controller, [ScriptedProposer(script)])
    assert run.result == (list(range(4, 4 + nan_at - 1)), FinishReason.ERROR)


def test_stop_before_an_error_is_a_stop(run_one: RunOne) -> None:
    runtime = TableModel(counting, COUNTING, nan_at=[6])
    run = run_one(
        runtime, (2, 3), SamplingParams(30), FixedController("scripted", 6), [ScriptedProposer(right)], eos=[6]
    )
    assert run.result == ([4, 5, 6], FinishReason.STOP)


def test_error_in_the_middle_of_a_prompt_is_nobodys(run_one: RunOne) -> None:
    """Rows without a consumer are not looked at."""
    run = run_one(TableModel(counting, COUNTING, nan_at=[0]), (2, 3), SamplingParams(3))
    assert run.result == ([4, 5, 6], FinishReason.LENGTH)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(()), "the prompt is empty"),
        (Request(range(16)), "has 16 tokens, and prompt and answer together may have 16; shorten it to at most 15"),
        (Request((1, COUNTING)), f"token id {COUNTING}; expected 0 to {COUNTING - 1}"),
        (Request((-1,)), "token id -1"),
        (Request((1.5,)), "no token id"),  # type: ignore[arg-type]
        (Request((1,), SamplingParams(stop_token_ids=[99])), "stop_token_ids holds the token id 99"),
        (Request((1,), num_speculative_tokens=-1), "num_speculative_tokens is -1"),
    ],
)
def test_requests_that_cannot_run_are_refused(request_: Request, message: str) -> None:
    engine = Engine(TableModel(counting, COUNTING, max_length=16), OffController(), [], MatchRule())
    with pytest.raises(UsageError, match=message):
        engine.add_request(request_)
    assert not engine.has_unfinished


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_tokens": True}, "max_tokens is True"),
        ({"max_tokens": 2.0}, "max_tokens is 2.0"),
        ({"temperature": 2.1}, "temperature is 2.1; expected 0 or a number from 1e-06 to 2"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": False}, "temperature is False"),
        ({"temperature": "0"}, "temperature is '0'"),
        ({"stop_token_ids": [1, -2]}, "stop_token_ids holds -2"),
        ({"stop_token_ids": [True]}, "stop_token_ids holds True"),
        ({"stop_token_ids": "12"}, "stop_token_ids is '12'"),
        ({"stop_token_ids": 3}, "stop_token_ids is 3"),
        ({"ignore_eos": 1}, "ignore_eos is 1"),
    ],
)
def test_sampling_params_are_checked(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SamplingParams(**fields)  # type: ignore[arg-type]


def test_sampling_params_are_values() -> None:
    assert SamplingParams(stop_token_ids=[1, 2]) == SamplingParams(stop_token_ids=(1, 2))
    assert len({SamplingParams(), SamplingParams(temperature=0)}) == 1
    with pytest.raises(TypeError):
        SamplingParams(top_q=0.9)  # type: ignore[call-arg]
