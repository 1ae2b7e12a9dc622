"""`paceline bench --endpoint`: servers over loopback, from the command line to the result's file."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from paceline.bench.result_file import read_result
from paceline.testing.endpoint import Piece, Reply, ScriptedEndpoint, chat_reply, json_page

Invoke = Callable[..., Any]  # see conftest.py


@contextmanager
def _served(endpoint: ScriptedEndpoint) -> Iterator[str]:
    """By another thread: the command's own loop is its own."""
    ready, address, stop = threading.Event(), list[str](), list[Callable[[], object]]()

    async def main() -> None:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        async with endpoint.serve() as url:
            address.append(url)
            stop.append(lambda: loop.call_soon_threadsafe(done.set))
            ready.set()
            await done.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield address[0]
    finally:
        stop[0]()
        thread.join()


def _answer(*sizes: int, **last: Any) -> Reply:
    """Chunks of so many tokens, the text the same however it is cut."""
    words, pieces, begin = [f"w{i} " for i in range(sum(sizes))], list[Piece](), 0
    for size in sizes:
        ids = list(range(begin, begin + size))
        pieces.append(Piece(0.001, "".join(words[begin : begin + size]), beside={"token_ids": ids}))
        begin += size
    return chat_reply(pieces, begin, finish="length", **last)


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "work.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"Say {i}.", "task_class": "saying"}) + "\n" for i in range(3)))
    return path


def test_two_servers_are_compared(invoke: Invoke, workload: Path, tmp_path: Path) -> None:
    told = {"num_spec_steps": 1, "num_draft_tokens": 4, "num_accepted_draft_tokens": 3}
    plain = ScriptedEndpoint(repeat(_answer(1, 1, 1, 1, 1)))
    drafting = ScriptedEndpoint(repeat(_answer(1, 4, metrics={"speculative_decoding": told})), owner="vllm")
    path = tmp_path / "result.json"

    with _served(plain) as off, _served(drafting) as on:
        arguments = ("--endpoint", f"{on}/v1", "--baseline-endpoint", off, "--max-tokens", 5, "--json", path)
        found = invoke("bench", "--workload", workload, "--concurrency", "1,2", *arguments)

    assert found.exit_code == 0, found.output
    runs = {(run.mode, run.concurrency): run for run in read_result(path).runs if run.task_class == "all"}
    assert set(runs) == {("off", 1), ("off", 2), ("endpoint", 1), ("endpoint", 2)}
    assert {run.num_errors for run in runs.values()} == {0}
    run = runs["endpoint", 1]
    assert (run.num_answers, run.num_output_tokens, run.identical_fraction) == (3, 15, 1.0)
    assert (run.mean_acceptance_length, run.draft_acceptance_rate) == (4.0, 0.75)
    assert run.speedup is not None
    assert runs["off", 1].mean_acceptance_length is None
    asked = [each.body for each in drafting.asked if each.body is not None]
    assert {body["max_tokens"] for body in asked[1:]} == {5}  # the first one warms up
    assert {body["messages"][-1]["content"] for body in asked} == {"Say 0.", "Say 1.", "Say 2."}


def test_one_server_alone_has_figures_and_no_speedup(invoke: Invoke, workload: Path, tmp_path: Path) -> None:
    path = tmp_path / "result.json"

    with _served(ScriptedEndpoint(repeat(_answer(1, 1)))) as address:
        arguments = ("--endpoint", address, "--max-tokens", 2, "--concurrency", 1, "--json", path)
        found = invoke("bench", "--workload", workload, *arguments)

    assert found.exit_code == 0, found.output
    (run,) = (run for run in read_result(path).runs if run.task_class == "all")
    assert (run.mode, run.num_answers, run.num_errors, run.speedup) == ("endpoint", 3, 0, None)
    assert run.ttft_ms.mean is not None


def test_a_server_that_refuses_everything_is_said_at_once(invoke: Invoke, workload: Path) -> None:
    refusal = json_page({"error": {"message": "invalid key"}}, 401)

    with _served(ScriptedEndpoint(repeat(refusal))) as address:
        found = invoke("bench", "--workload", workload, "--endpoint", address, "--concurrency", 1)

    assert found.exit_code == 1
    assert "the server answered 401 Unauthorized: invalid key" in found.stderr


def test_a_server_that_is_not_there_is_said_at_once(invoke: Invoke, workload: Path) -> None:
    with _served(ScriptedEndpoint()) as address:
        pass

    found = invoke("bench", "--workload", workload, "--endpoint", address, "--concurrency", 1)

    assert found.exit_code == 1
    assert f"no connection to {address}" in found.stderr


def test_a_server_that_fails_behind_the_warm_up_is_a_failure_with_a_result(
    invoke: Invoke, workload: Path, tmp_path: Path
) -> None:
    path = tmp_path / "result.json"
    broken = chain([_answer(1, 1)], repeat(json_page({"error": {"message": "out of memory"}}, 500)))

    with _served(ScriptedEndpoint(broken)) as address:
        arguments = ("--endpoint", address, "--max-tokens", 2, "--concurrency", 1, "--json", path)
        found = invoke("bench", "--workload", workload, *arguments)

    assert (found.exit_code, "every answer failed" in found.stderr) == (1, True)
    assert "out of memory" in found.stdout
    assert [run.num_errors for run in read_result(path).runs if run.task_class == "all"] == [3]
