"""llama.cpp's own server as a benchmark's target, for real.

It comes with the package `xllamacpp`, a wheel for CPUs, which no extra of this project brings: `pip install xllamacpp`,
then `make test-slow`. The servers listen on free ports of this machine and run SmolLM2. How fast they are is not looked
at: that wheel is built for every processor, and slower than a build for this one.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from paceline import SamplingParams
from paceline.bench.base import Answer, Ask, Counts, Message, Report
from paceline.bench.targets.endpoint import EndpointOptions, EndpointTarget, endpoint_modes

xllamacpp = pytest.importorskip("xllamacpp", reason="llama.cpp's server comes with the package xllamacpp")
pytestmark = pytest.mark.slow

REPEATING = "Write this out twice: the quick brown fox jumps over the lazy dog, the quick brown fox jumps over it."
NUM_TOKENS = 40

Seen = Mapping[str, tuple[list[Answer], Report]]


def _server(path: Path, *, speculates: bool, has_metrics: bool = True) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = 2048, 2
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.endpoint_metrics = has_metrics
    if speculates:
        params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_CACHE]
    return xllamacpp.Server(params)


def _ask(prompt: str) -> Ask:
    return Ask((Message("user", prompt),), SamplingParams(max_tokens=NUM_TOKENS, ignore_eos=True))


async def _asked(servers: Mapping[str, Any], prompts: list[str], options: EndpointOptions | None = None) -> Seen:
    """All prompts at once, of one server after the other."""
    addresses = {mode: server.listening_address for mode, server in servers.items()}
    target, seen = await EndpointTarget.connect(addresses, options), dict[str, tuple[list[Answer], Report]]()
    for mode in endpoint_modes(addresses):
        async with target.session(mode) as session:
            answers = await asyncio.gather(*(session.answer(_ask(prompt)) for prompt in prompts))
            seen[mode.name] = list(answers), await session.report()
    return seen


def test_the_same_work_with_and_without_speculation(smollm2_path: Path) -> None:
    servers = {name: _server(smollm2_path, speculates=name != "off") for name in ("off", "endpoint")}

    seen = asyncio.run(_asked(servers, [REPEATING] * 2))

    for answers, report in seen.values():
        for answer in answers:
            assert answer.error is None
            assert answer.num_tokens == NUM_TOKENS == sum(chunk.num_tokens for chunk in answer.chunks)
            assert answer.chunks[0].num_tokens == 1
            assert (answer.finish_reason, answer.counts) == ("length", None)
        assert report.counts is not None
        assert report.counts.num_emitted == 2 * (NUM_TOKENS - 1)
    plain, counts = seen["off"][1].counts, seen["endpoint"][1].counts
    assert plain == Counts(num_target_steps=2 * (NUM_TOKENS - 1), num_emitted=2 * (NUM_TOKENS - 1))
    assert counts is not None
    assert 0 < counts.num_accepted_tokens <= counts.num_draft_tokens
    assert counts.num_drafts <= counts.num_target_steps < counts.num_emitted
    assert sum(counts.per_position) == counts.num_accepted_tokens


def test_a_server_that_shows_no_metrics_tells_with_its_answers(smollm2_path: Path) -> None:
    servers = {"endpoint": _server(smollm2_path, speculates=True, has_metrics=False)}

    (answer,), report = asyncio.run(_asked(servers, [REPEATING]))["endpoint"]

    assert (answer.error, report.counts) == (None, None)
    assert answer.counts is not None
    assert answer.counts.num_emitted == NUM_TOKENS - 1
    assert 0 < answer.counts.num_accepted_tokens <= answer.counts.num_draft_tokens


def test_completions(smollm2_path: Path) -> None:
    servers = {"off": _server(smollm2_path, speculates=False)}

    (answer,), _ = asyncio.run(_asked(servers, [REPEATING], EndpointOptions(api="completions")))["off"]

    assert (answer.error, answer.num_tokens) == (None, NUM_TOKENS)


def test_a_prompt_that_is_too_long_is_that_answers_error(smollm2_path: Path) -> None:
    servers = {"off": _server(smollm2_path, speculates=False)}

    long, short = asyncio.run(_asked(servers, ["word " * 4000, "Hello."]))["off"][0]

    assert long.error is not None
    assert long.error.startswith("the server answered 400 Bad Request: request (")
    assert (short.error, short.num_tokens) == (None, NUM_TOKENS)


def test_what_it_says_of_itself(smollm2_path: Path) -> None:
    server = _server(smollm2_path, speculates=False)

    described = asyncio.run(EndpointTarget.connect({"off": server.listening_address})).describe()["modes"]["off"]

    assert (described["server"], described["owned_by"], described["counters"]) == ("llama.cpp", "llamacpp", "llamacpp")
