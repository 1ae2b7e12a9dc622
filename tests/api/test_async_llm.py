"""AsyncLLM on tiny models: the text of LLM, many streams at once, readers that leave, and processes that end."""

import asyncio
import subprocess
import sys
from collections.abc import Coroutine
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest

from paceline import LLM, AsyncLLM, AsyncStream, EngineDeadError, Piece, SamplingParams, Speculation, UsageError

GUARD = 60.0  # seconds after which a test has hung
PROMPT = "the and of to in hello world the and of to in hello world the and of"
PARAMS = SamplingParams(max_tokens=40, ignore_eos=True)
SPECULATION = Speculation("ngram", 4, {"min_match": 1})

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(main, GUARD))


@pytest.fixture(scope="module")
def llm(tiny_llama_path: Path) -> LLM:
    return LLM(tiny_llama_path, speculation=SPECULATION)


@pytest.fixture
def served(tiny_llama_path: Path) -> AsyncLLM:
    return AsyncLLM(tiny_llama_path, speculation=SPECULATION, max_num_seqs=8, max_buffered_tokens=16)


def prompts_of(number: int) -> list[str]:
    random = Random(0)
    return [" ".join(random.choices(PROMPT.split(), k=random.randint(1, 20))) for _ in range(number)]


async def read(stream: AsyncStream) -> list[Piece]:
    return [piece async for piece in stream]


def assert_idle(served: AsyncLLM) -> None:
    engine = served._loaded.engine
    assert engine.sequences == []
    assert engine.num_free_pages == served.runtime.info.num_pages
    engine.check_integrity()


def test_many_prompts_have_the_answers_of_llm(llm: LLM, served: AsyncLLM) -> None:
    async def main() -> None:
        async with served:
            together = await served.generate(prompts, PARAMS, namespace="a", priority=2)
            for output, alone in zip(together, llm.generate(prompts, PARAMS), strict=True):
                assert (output.text, output.token_ids, output.usage.prompt_tokens, output.finish_reason) == (
                    alone.text,
                    alone.token_ids,
                    alone.usage.prompt_tokens,
                    "length",
                )
            assert await served.generate([], PARAMS) == []

    prompts = prompts_of(24)
    run(main())
    assert_idle(served)


def test_streams_have_the_pieces_of_llm(llm: LLM, served: AsyncLLM) -> None:
    """Stop strings too: what may belong to one is held back, and what belongs to it is left out."""

    async def main() -> None:
        async with served:
            streams = [served.stream(prompt, params) for prompt, params in asked]
            for pieces, stream, reference in zip(
                await asyncio.gather(*map(read, streams)), streams, references, strict=True
            ):
                assert "".join(piece.text for piece in pieces) == reference.text == stream.output().text
                assert sum((piece.token_ids for piece in pieces), ()) == reference.token_ids
                assert stream.output().finish_reason == reference.finish_reason

    prompts, random = prompts_of(16), Random(3)
    plain = llm.generate(prompts, PARAMS)
    stops = [output.text[(cut := random.randint(8, 20)) : cut + random.randint(2, 5)] for output in plain]
    asked = [
        (prompt, SamplingParams(max_tokens=40, ignore_eos=True, stop=[stop] if i % 2 else []))
        for i, (prompt, stop) in enumerate(zip(prompts, stops, strict=True))
    ]
    references = [llm.generate(prompt, params)[0] for prompt, params in asked]
    assert {output.finish_reason for output in references} == {"stop", "length"}
    run(main())
    assert_idle(served)


def test_conversations(llm: LLM, served: AsyncLLM) -> None:
    async def main() -> None:
        async with served:
            assert served.has_chat_template
            messages = [{"role": "user", "content": "hello world"}]
            stream = served.stream(messages, PARAMS)
            messages.append({"role": "user", "content": "of what is asked later the stream knows nothing"})
            first = [messages[0]]
            [expected] = llm.chat(first, PARAMS)
            assert "".join([piece.text for piece in await read(stream)]) == expected.text
            assert stream.output().prompt_token_ids == expected.prompt_token_ids
            assert [output.text for output in await served.chat([first, first], PARAMS)] == [expected.text] * 2
            with pytest.raises(UsageError, match="no variable 'temper'"):
                await served.chat(first, PARAMS, chat_template_kwargs={"temper": 1})

    run(main())


def test_what_is_wrong_is_told(served: AsyncLLM) -> None:
    async def main() -> None:
        async with served:
            for wrong in (5, ["a", 5], "the " * 3000, [99999], []):
                with pytest.raises(UsageError):
                    await served.generate([wrong, PROMPT], PARAMS)  # type: ignore[list-item]
            with pytest.raises(UsageError, match="params is 3"):
                await served.generate(PROMPT, 3)  # type: ignore[arg-type]
            stream = served.stream([99999])
            with pytest.raises(UsageError, match="token id 99999"):
                async with stream:
                    raise AssertionError("it begins")
            with pytest.raises(UsageError, match="token id 99999"):
                await anext(stream)
            served.stream("the " * 3000)  # nobody looks
            await stream.aclose()
            assert stream.output().finish_reason == "abort"
            with pytest.raises(UsageError, match="priority is 'high'"):
                await served.generate(PROMPT, PARAMS, priority="high")  # type: ignore[arg-type]

    run(main())
    assert_idle(served)


@pytest.mark.parametrize("name", ["max_waiting", "max_buffered_tokens"])
def test_limits_are_checked_before_the_model_is_loaded(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is -1"):
        AsyncLLM("/nowhere.gguf", **{name: -1})  # type: ignore[arg-type]


def test_a_cancelled_call_withdraws_its_requests(served: AsyncLLM) -> None:
    async def main() -> None:
        async with served:
            for i in range(20):
                task = asyncio.create_task(served.generate(prompts_of(12), SamplingParams(400, ignore_eos=True)))
                await asyncio.sleep(i * 0.001)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
                while served._engine().num_open:  # a step may be under way
                    await asyncio.sleep(0.001)
                assert_idle(served)

    run(main())


def test_streams_left_at_any_moment(llm: LLM, served: AsyncLLM) -> None:
    """Before they begin, in the middle, after timeouts, closed or just lost: what was read is the beginning of the
    answer, and nobody else notices."""

    async def leave(number: int) -> None:
        stream, pieces = served.stream(prompts[number], PARAMS), list[Piece]()
        for _ in range(random.randrange(40)):
            try:
                pieces.append(await asyncio.wait_for(anext(stream), random.choice([0.0001, 0.001, 1])))
            except TimeoutError:
                continue
            except StopAsyncIteration:
                break
        if number % 3:
            await stream.aclose()
            pieces += await read(stream)  # what had come by then
            assert stream.output().token_ids == sum((piece.token_ids for piece in pieces), ())
        tokens = sum((piece.token_ids for piece in pieces), ())
        assert tokens == expected[number].token_ids[: len(tokens)]

    async def main() -> None:
        async with served:
            others = asyncio.create_task(served.generate(prompts, PARAMS))
            await asyncio.gather(*[leave(number) for number in range(60)])
            assert [output.text for output in await others] == [output.text for output in expected]
            while served._engine().num_open:
                await asyncio.sleep(0.001)
            assert_idle(served)

    random, prompts = Random(5), prompts_of(60)
    expected = llm.generate(prompts, PARAMS)
    run(main())


def test_a_timeout_loses_no_piece(llm: LLM, served: AsyncLLM) -> None:
    async def main() -> None:
        async with served:
            for timeout in (0.00005, 0.0003):
                stream, pieces = served.stream(PROMPT, PARAMS), list[Piece]()
                while True:
                    try:
                        pieces.append(await asyncio.wait_for(anext(stream), timeout))
                    except TimeoutError:
                        await asyncio.sleep(0)
                    except StopAsyncIteration:
                        break
                assert "".join(piece.text for piece in pieces) == expected.text
                assert stream.output().finish_reason == "length"

    [expected] = llm.generate(PROMPT, PARAMS)
    run(main())


def test_the_answer_so_far_includes_what_was_not_read(llm: LLM, served: AsyncLLM) -> None:
    async def main() -> None:
        async with served:
            stream = served.stream(PROMPT, SamplingParams(max_tokens=10, ignore_eos=True))
            assert stream.output().token_ids == ()
            while len(stream.output().token_ids) < 10:
                await asyncio.sleep(0.001)
            assert stream.output().text == llm.generate(PROMPT, SamplingParams(max_tokens=10, ignore_eos=True))[0].text
            assert sum((piece.token_ids for piece in await read(stream)), ()) == stream.output().token_ids

    run(main())


def test_a_death_reaches_readers_and_callers(served: AsyncLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    forward, numbers = served.runtime.forward, count()

    def dying(segments: Any) -> Any:
        """Neither answer is over by then, however busy the machine."""
        if next(numbers) > 20:
            raise TypeError("a defect")
        return forward(segments)

    async def main() -> None:
        monkeypatch.setattr(served.runtime, "forward", dying)
        stream = served.stream(PROMPT, SamplingParams(400, ignore_eos=True))
        await anext(stream)
        asked = SamplingParams(400, ignore_eos=True)
        calls = [asyncio.create_task(served.generate(PROMPT, asked)), asyncio.create_task(read(stream))]
        for call in calls:
            with pytest.raises(EngineDeadError, match="TypeError"):
                await call
        with pytest.raises(EngineDeadError, match="TypeError"):
            await served.generate(PROMPT)
        await stream.aclose()
        await served.close()

    run(main())


def test_it_belongs_to_its_first_loop(served: AsyncLLM) -> None:
    async def main() -> None:
        assert len(await served.generate(PROMPT, PARAMS)) == 1
        stream = served.stream(PROMPT, PARAMS)
        for call in (read(stream), stream.aclose()):
            with pytest.raises(UsageError, match="another event loop"):
                await asyncio.to_thread(asyncio.run, call)
        await stream.aclose()

    run(main())
    with pytest.raises(UsageError, match="another event loop"):
        run(served.generate(PROMPT, PARAMS))


def test_a_closed_one_says_so(served: AsyncLLM) -> None:
    async def main() -> None:
        await served.close()
        with pytest.raises(EngineDeadError, match="was closed"):
            await served.generate(PROMPT)
        await served.close()

    run(main())


FORGETFUL = """
import asyncio, sys
from paceline import AsyncLLM, SamplingParams

async def main(llm):
    global kept
    streams = [llm.stream("the and of", SamplingParams(2000, ignore_eos=True)) for _ in range(4)]
    for stream in streams:
        await anext(stream)
    kept = [llm, *streams]
    if sys.argv[2] == "exit":
        sys.exit(7)

asyncio.run(main(AsyncLLM(sys.argv[1], max_buffered_tokens=int(sys.argv[3]))))
"""


@pytest.mark.parametrize("way", ["return", "exit"])
@pytest.mark.parametrize("max_buffered", [1, 5000])
def test_a_process_that_forgets_it_ends(tiny_llama_path: Path, way: str, max_buffered: int) -> None:
    """In the middle of forwards, or while all streams are held."""
    command = [sys.executable, "-W", "error", "-c", FORGETFUL, str(tiny_llama_path), way, str(max_buffered)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=GUARD, check=False)
    assert (result.returncode, result.stderr) == (7 if way == "exit" else 0, "")
