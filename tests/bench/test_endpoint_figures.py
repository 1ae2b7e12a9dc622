"""From a script of delays to a benchmark's figures, through the runner and scripted endpoints: all exactly known."""

import asyncio
from collections.abc import Mapping

import pytest
from httpx2 import MockTransport, Request, Response

from paceline import SamplingParams
from paceline.bench.base import ALL, Item, Load, Workload
from paceline.bench.figures import summarise
from paceline.bench.machine import EnergyMeter
from paceline.bench.result import Run, Spread
from paceline.bench.runner import Asking, Runner
from paceline.bench.schedule import plan_blocks
from paceline.bench.targets.endpoint import EndpointOptions, EndpointTarget, endpoint_modes
from paceline.testing.endpoint import Piece, Reply, ScriptedEndpoint, chat_reply, text_page
from paceline.testing.virtual_time import run_in_virtual_time

SLO = {"ttft": 500.0, "tpot": 125.0}


def _answer(first: float, gap: float, *sizes: int) -> Reply:
    """A chunk of `sizes[0]` tokens after `first` seconds, then one every `gap` seconds."""
    pieces, begin = list[Piece](), 0
    for i, size in enumerate(sizes):
        ids = list(range(begin, begin + size))
        text = "".join(f"w{token} " for token in ids)
        pieces.append(Piece(gap if i else first, text, beside={"token_ids": ids}))
        begin += size
    return chat_reply(pieces, begin, finish="length")


def _transport(endpoints: Mapping[str, ScriptedEndpoint]) -> MockTransport:
    """By the host's name."""
    transports = {host: endpoint.transport() for host, endpoint in endpoints.items()}

    async def handle(request: Request) -> Response:
        return await transports[request.url.host].handle_async_request(request)

    return MockTransport(handle)


def _figures(endpoints: Mapping[str, ScriptedEndpoint], workload: Workload, load: Load) -> Mapping[str, Run]:
    """By mode, of one round; each mode's endpoint is at the host of its name."""
    addresses = {mode: f"http://{mode}" for mode in endpoints}
    modes = endpoint_modes(addresses)

    async def main() -> list[Run]:
        clock = asyncio.get_running_loop().time
        target = await EndpointTarget.connect(addresses, EndpointOptions(clock=clock, transport=_transport(endpoints)))
        runner = Runner(target, Asking(SamplingParams(max_tokens=5), seed=1), EnergyMeter(), clock)
        is_trace = load.concurrency is None
        plans = plan_blocks(workload, load, modes, rounds=1, seed=1, follows_trace=is_trace)
        return summarise([block async for block in runner.run(plans)], modes=modes, slo=SLO)

    return {run.mode: run for run in run_in_virtual_time(main()) if run.task_class == ALL}


def _workload(*arrivals: float) -> Workload:
    items = [Item(f"item-{i}", "code", ("Say it.",), arrival=arrival) for i, arrival in enumerate(arrivals)]
    return Workload("scripted", tuple(items))


def _same(milliseconds: float) -> Spread:
    return Spread(milliseconds, milliseconds, milliseconds, milliseconds)


def test_figures_of_two_servers_at_a_concurrency_of_two() -> None:
    """Four answers of five tokens, two at a time: plainly in 1.5 s each, and with drafts of three in 1 s."""
    plain = ScriptedEndpoint([_answer(0.5, 0.25, 1, 1, 1, 1, 1)] * 4)
    counters = [
        text_page(
            f"vllm:generation_tokens_total {tokens}\nvllm:spec_decode_num_drafts_total {drafts}\n"
            f"vllm:spec_decode_num_draft_tokens_total {3 * drafts}\n"
            f"vllm:spec_decode_num_accepted_tokens_total {3 * drafts}\n"
        )
        for tokens, drafts in ((70, 2), (70, 2), (90, 6))
    ]
    drafting = ScriptedEndpoint([_answer(0.5, 0.5, 1, 4)] * 4, {"/metrics": counters})

    runs = _figures({"off": plain, "endpoint": drafting}, _workload(*[0.0] * 4), Load(concurrency=2))

    off, on = runs["off"], runs["endpoint"]
    assert (off.num_answers, off.num_errors, on.num_answers, on.num_errors) == (4, 0, 4, 0)
    assert (off.ttft_ms, off.tpot_ms, off.e2e_ms) == (_same(500), _same(250), _same(1500))
    assert (on.ttft_ms, on.tpot_ms, on.e2e_ms) == (_same(500), _same(125), _same(1000))
    assert (off.chunk_gap_ms, on.chunk_gap_ms) == (_same(250), _same(500))
    assert (off.goodput, on.goodput) == (0.0, 2.0)  # all four of "endpoint" in 2 s
    assert (off.output_tokens_per_second, on.output_tokens_per_second) == (20 / 3, 10.0)
    assert (on.speedup, on.request_speedup, on.identical_fraction) == pytest.approx((2.0, 1.5, 1.0))
    assert (on.mean_acceptance_length, on.draft_acceptance_rate) == (4.0, 1.0)
    assert (off.mean_acceptance_length, off.draft_acceptance_rate) == (None, None)


def test_goodput_of_an_open_loop() -> None:
    """Arrivals at 0, 0.25 and 1 s, each answered at once: the second one misses the TTFT, and the last ends at 2 s."""
    script = [_answer(0.5, 0.125, 1, 1, 1, 1, 1), _answer(0.75, 0.125, 1, 1, 1), _answer(0.5, 0.125, 1, 1, 1, 1, 1)]

    run = _figures({"endpoint": ScriptedEndpoint(script)}, _workload(0.0, 0.25, 1.0), Load(request_rate=1.0))[
        "endpoint"
    ]

    assert (run.num_answers, run.goodput) == (3, 1.0)
    assert run.ttft_ms.mean == pytest.approx(1750 / 3)
    assert run.tpot_ms == _same(125)


def test_errors_are_no_answers() -> None:
    script = [_answer(0.5, 0.125, 1, 1, 1, 1, 1), Reply([], 503)]

    run = _figures({"endpoint": ScriptedEndpoint(script)}, _workload(0.0, 0.0), Load(concurrency=1))["endpoint"]

    assert (run.num_answers, run.num_errors, run.num_output_tokens) == (1, 1, 5)
    assert run.goodput == 1.0
