"""Choices of one request: each begins with the pages of the first one's prompt, and says what it says alone."""

from collections.abc import Sequence

import pytest

from paceline.acceptance import MatchRule
from paceline.controller import FixedController
from paceline.engine import Engine, EngineOptions, Request
from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams
from paceline.testing import TableModel, TableProposer, seeded_table

TABLE = seeded_table(5, seed=4)
PARAMS = SamplingParams(14, temperature=1.0)


def engine_of(num_pages: int = 60, num_draft_pages: int = 60, draft_length: int = 64, reuses: bool = True) -> Engine:
    draft = TableModel(TABLE, 5, num_pages=num_draft_pages, page_size=3, max_length=draft_length)
    runtime = TableModel(TABLE, 5, num_pages=num_pages)
    options = EngineOptions(max_num_seqs=6, max_draft_tokens=3, reuses_prefixes=reuses)
    return Engine(runtime, FixedController("table", 3), [TableProposer(draft)], MatchRule(), options=options)


def serve(engine: Engine, requests: Sequence[Request]) -> list[tuple[int, ...]]:
    tokens: dict[int, tuple[int, ...]] = {}
    for request in requests:
        tokens[engine.add_request(request)] = ()
    while engine.has_unfinished:
        for output in engine.step():
            tokens[output.sequence] += output.tokens
        engine.check_integrity()
    return list(tokens.values())


def choices(prompt: Sequence[int], num: int) -> list[Request]:
    return [Request(prompt, PARAMS, sample_seed=50 + i, fork_of=0 if i else None) for i in range(num)]


@pytest.mark.parametrize("reuses", [True, False])
@pytest.mark.parametrize("num_prompt", [1, 3, 4, 5, 11, 12])
@pytest.mark.parametrize(("num_pages", "num_draft_pages", "draft_length"), [(60, 60, 64), (12, 22, 64), (9, 9, 14)])
def test_each_as_alone(num_pages: int, num_draft_pages: int, draft_length: int, num_prompt: int, reuses: bool) -> None:
    """With a draft model that keeps pages too, with few pages, and where its context ends before the target's."""
    prompt = [(2 * i + 1) % 5 for i in range(num_prompt)]
    alone = [serve(engine_of(), [Request(prompt, PARAMS, sample_seed=50 + i)])[0] for i in range(5)]
    assert len(set(alone)) > 1
    engine = engine_of(num_pages, num_draft_pages, draft_length, reuses)
    assert serve(engine, choices(prompt, 5)) == alone
    assert engine.num_free_pages == num_pages


def test_the_prompt_is_read_once() -> None:
    engine = engine_of(reuses=False)
    for request in choices(range(5), 4):
        engine.add_request(request)
    engine.step()
    assert engine.stats().num_waiting == 3  # for the first to read it
    engine.step()
    assert engine.stats().num_running == 4
    engine.check_integrity()


def test_a_first_choice_that_goes_away_holds_nobody_up() -> None:
    [expected] = serve(engine_of(), [Request(range(5), PARAMS, sample_seed=51)])
    for num_steps in range(3):
        engine = engine_of()
        first, second = (engine.add_request(request) for request in choices(range(5), 2))
        tokens: dict[int, tuple[int, ...]] = {first: (), second: ()}
        while engine.has_unfinished:
            if engine.stats().num_steps == num_steps:
                engine.hold(first)
            elif engine.stats().num_steps == num_steps + 1:
                engine.abort(first)
            for output in engine.step():
                tokens[output.sequence] += output.tokens
            engine.check_integrity()
        assert tokens[second] == expected


def test_another_prompt_or_tenant_is_refused() -> None:
    engine = engine_of()
    first = engine.add_request(Request((1, 2, 3), PARAMS))
    for other in (
        Request((1, 2, 4), PARAMS, fork_of=first),
        Request((1, 2), PARAMS, fork_of=first),
        Request((1, 2, 3), PARAMS, namespace="theirs", fork_of=first),
    ):
        with pytest.raises(UsageError, match="fork_of is 0, which has another prompt or namespace"):
            engine.add_request(other)
    engine.add_request(Request((1, 2, 4), PARAMS, fork_of=99))  # whoever has ended is not missed
    assert engine.stats().num_waiting == 2


def test_a_choice_that_scores_its_prompt_reads_it_itself() -> None:
    params = SamplingParams(4, prompt_logprobs=1)
    engine = engine_of()
    sequences = [engine.add_request(Request(range(5), params, fork_of=fork)) for fork in (None, 0)]
    scored: dict[int, list[int]] = {sequence: [] for sequence in sequences}
    while engine.has_unfinished:
        for output in engine.step():
            scored[output.sequence] += [each.token for each in output.prompt_logprobs]
    assert list(scored.values()) == [[1, 2, 3, 4]] * 2


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    with pytest.raises(UsageError, match="sample_seed"):
        engine_of().add_request(Request((1,), PARAMS, sample_seed=seed))
