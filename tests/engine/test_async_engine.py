"""The engine in a thread of its own: streams, backpressure, consumers that go away, and every way to die."""

import asyncio
import gc
import os
import signal
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import cache
from random import Random
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from paceline.acceptance import MatchRule
from paceline.cache import IntegrityError
from paceline.controller import BatchView, FixedController, Plan
from paceline.engine import AsyncEngine, Engine, EngineOptions, FinishReason, Request, StepOutput, TokenStream
from paceline.engine.open_requests import WaitingLine
from paceline.engine.token_stream import Channel
from paceline.errors import EngineDeadError, UnsoundEngineError, UsageError
from paceline.proposers import Ask, Draft
from paceline.runtime import Scores, Segment
from paceline.sampling_params import SamplingParams
from paceline.telemetry import StepRecord
from paceline.testing import ScriptedDraft, ScriptedProposer, TableModel, decode_plainly, seeded_table

GUARD = 60.0  # seconds after which a test has hung

T = TypeVar("T")


@cache
def logits_after(seen: tuple[int, ...]) -> NDArray[np.float32]:
    return seeded_table(4, seed=2)(seen)


def table(seen: tuple[int, ...]) -> NDArray[np.float32]:
    return logits_after(seen[-3:])


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(main, GUARD))


def nearly_right(context: tuple[int, ...], num: int) -> ScriptedDraft:
    """A draft with a wrong token now and then."""
    tokens = decode_plainly(table, context, num)
    return ScriptedDraft(tuple(token if (len(context) + i) % 5 else 0 for i, token in enumerate(tokens)))


class Bomb:
    """An engine of which one place fails once it is told to. `pause`: seconds that a forward takes longer."""

    def __init__(self, place: str = "", error: BaseException | None = None, pause: float = 0.0) -> None:
        self.place = place
        self.error = error
        self.pause = pause
        self.is_armed = threading.Event()

    def pass_by(self, place: str) -> None:
        if self.error is not None and place == self.place and self.is_armed.is_set():
            raise self.error

    def engine(
        self, num_pages: int = 400, max_length: int = 64, max_num_seqs: int = 64, num_drafted: int = 3
    ) -> Engine:
        bomb = self

        class Model(TableModel):
            def forward(self, segments: Sequence[Segment]) -> Scores:
                bomb.pass_by("forward")
                time.sleep(bomb.pause)
                return super().forward(segments)

        class Planner(FixedController):
            def plan(self, batch: BatchView) -> Plan:
                bomb.pass_by("plan")
                return super().plan(batch)

            def observe(self, record: StepRecord) -> None:
                bomb.pass_by("observe")
                super().observe(record)

        class Drafter(ScriptedProposer):
            def propose(self, asks: Sequence[Ask]) -> list[Draft]:
                bomb.pass_by("propose")
                return super().propose(asks)

        model = Model(table, 4, num_pages=num_pages, max_length=max_length, max_rows=256, max_logits_rows=256)
        return Engine(
            model,
            Planner("scripted", num_drafted),
            [Drafter(nearly_right)],
            MatchRule(),
            options=EngineOptions(max_num_seqs=max_num_seqs, max_draft_tokens=num_drafted),
            records=lambda _record: bomb.pass_by("records"),
        )


def prompt_of(number: int) -> list[int]:
    random = Random(number)
    return [random.randrange(4) for _ in range(random.randint(1, 12))]


def request_of(number: int, num_tokens: int = 20) -> Request:
    return Request(prompt_of(number), SamplingParams(num_tokens))


def expected(number: int, num_tokens: int = 20) -> list[int]:
    return decode_plainly(table, prompt_of(number), num_tokens)


def tokens_of(outputs: Sequence[StepOutput]) -> list[int]:
    return [token for output in outputs for token in output.tokens]


async def read(stream: TokenStream) -> list[int]:
    return [token async for output in stream for token in output.tokens]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def is_cancelled(task: "asyncio.Task[Any]") -> bool:
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


def assert_nothing_left(engine: Engine, num_pages: int = 400) -> None:
    assert engine.sequences == []
    assert engine.num_free_pages == num_pages
    engine.check_integrity()


def test_64_streams_are_each_what_the_request_alone_gives() -> None:
    async def main() -> None:
        async with AsyncEngine(engine) as served:
            streams = await asyncio.gather(*[served.add_request(request_of(number)) for number in range(64)])
            assert await asyncio.gather(*map(read, streams)) == [expected(number) for number in range(64)]
            assert served.num_open == served.num_waiting == 0
            assert served.stats().finish_counts == {FinishReason.LENGTH: 64}
        assert not served.is_alive

    engine = Bomb().engine()
    run(main())
    assert_nothing_left(engine)


def test_a_step_is_handed_over_at_once() -> None:
    num_calls = 0

    async def main() -> None:
        nonlocal num_calls
        loop = asyncio.get_running_loop()
        call = loop.call_soon_threadsafe

        def count(*arguments: Any, **options: Any) -> asyncio.Handle:
            nonlocal num_calls
            num_calls += 1
            return call(*arguments, **options)

        loop.call_soon_threadsafe = count  # type: ignore[method-assign, assignment]
        async with AsyncEngine(engine) as served:
            streams = await asyncio.gather(*[served.add_request(request_of(number)) for number in range(32)])
            await asyncio.gather(*map(read, streams))

    engine = Bomb().engine()
    run(main())
    assert num_calls <= engine.stats().num_steps + 2  # the end of the thread, and one round that only took requests


def test_an_idle_thread_sleeps_and_has_looked_after_its_integrity() -> None:
    idle, polls = threading.Event(), list[None]()

    class Watched(Engine):
        @property
        def has_work(self) -> bool:
            polls.append(None)
            return super().has_work

        def step(self) -> list[StepOutput]:
            outputs = super().step()
            if not self.has_unfinished:
                idle.set()
            return outputs

    async def main() -> None:
        engine = Watched(
            TableModel(table, 4), FixedController("scripted", 2), [ScriptedProposer(nearly_right)], MatchRule()
        )
        async with AsyncEngine(engine) as served:
            stream = await served.add_request(request_of(0, 40))
            await stream.aclose()
            assert await asyncio.to_thread(idle.wait, GUARD)
            await asyncio.sleep(0.01)
            num_polls = len(polls)
            await asyncio.sleep(0.05)
            assert len(polls) == num_polls
            assert await read(await served.add_request(request_of(1))) == expected(1)

    run(main())


def test_a_bad_request_is_its_callers_affair() -> None:
    async def main() -> None:
        async with AsyncEngine(Bomb().engine(), max_waiting=1) as served:
            stream = await served.add_request(request_of(3))
            for wrong in (Request([]), Request([99]), Request([1] * 64)):
                with pytest.raises(UsageError, match="prompt"):
                    await served.add_request(wrong)
            with pytest.raises(AttributeError):
                await served.add_request(None)  # type: ignore[arg-type]
            assert await read(stream) == expected(3)
            assert served.num_waiting == served.num_open == 0

    run(main())


def test_an_unsound_engine_takes_no_request() -> None:
    async def main() -> None:
        engine = Bomb().engine()
        async with AsyncEngine(engine) as served:
            engine._health.fail(IntegrityError("a page was lost"))
            with pytest.raises(UnsoundEngineError, match="a page was lost"):
                await served.add_request(request_of(0))

    run(main())


@pytest.mark.parametrize("name", ["max_waiting", "max_buffered_tokens"])
def test_limits_are_checked(name: str) -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match=f"{name} is 0"):
            AsyncEngine(Bomb().engine(), **{name: 0})

    run(main())


def test_an_engine_with_requests_or_without_a_loop_is_refused() -> None:
    async def main() -> None:
        engine = Bomb().engine()
        engine.add_request(request_of(0))
        with pytest.raises(UsageError, match="has requests already"):
            AsyncEngine(engine)

    run(main())
    with pytest.raises(UsageError, match="no event loop is running"):
        AsyncEngine(Bomb().engine())


def test_only_so_many_wait_and_others_come_in_order() -> None:
    """One sequence runs at a time, so a request waits until those before it have ended."""

    async def main() -> None:
        order: list[int] = []

        async def add(number: int) -> TokenStream:
            stream = await served.add_request(request_of(number, 30))
            order.append(number)
            return stream

        async with AsyncEngine(engine, max_waiting=2) as served:
            tasks = [asyncio.create_task(add(number)) for number in range(40)]
            await until(lambda: len(order) > 2)
            assert engine.stats().num_waiting <= 2
            cancelled = [number for number in range(20, 40, 3) if await is_cancelled(tasks[number])]
            assert cancelled  # while they waited
            streams = [await task for task in tasks if not task.cancelled()]
            assert order == [number for number in range(40) if number not in cancelled]
            assert await asyncio.gather(*map(read, streams)) == [expected(number, 30) for number in order]
            assert served.num_waiting == served.num_open == 0

    engine = Bomb().engine(max_num_seqs=1)
    run(main())
    assert_nothing_left(engine)


def test_one_who_is_let_in_and_cancelled_at_the_same_moment_makes_room() -> None:
    async def main() -> None:
        line = WaitingLine(1)
        await line.enter()
        first, second, third = [asyncio.create_task(line.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        second.cancel()
        line.leave()  # lets the first in
        first.cancel()
        await asyncio.wait([first, second])
        await third
        assert first.cancelled()
        assert second.cancelled()
        assert len(line) == 1
        line.leave()
        assert len(line) == 0

    run(main())


def test_callers_that_are_cancelled_at_any_moment_leave_no_trace() -> None:
    async def main() -> None:
        random = Random(0)
        async with AsyncEngine(engine, max_waiting=3) as served:
            for number in range(50):
                tasks = [asyncio.create_task(served.add_request(request_of(number))) for _ in range(6)]
                for _ in range(random.randrange(6)):
                    await asyncio.sleep(random.choice([0, 0, 0.0005]))
                victims = random.sample(tasks, 4)
                for task in victims:
                    task.cancel()
                await asyncio.wait(victims)
                for task in tasks:
                    if task not in victims:
                        assert await read(await task) == expected(number)
                del victims, tasks, task
            await until(lambda: served.num_open == 0)
            assert served.num_waiting == 0

    engine = Bomb().engine()
    run(main())
    assert_nothing_left(engine)


async def leave_somehow(stream: TokenStream, random: Random, tokens: list[int]) -> None:
    """Read a random part of the answer, then go away in one of the ways that consumers have."""
    num_outputs, way = random.randrange(12), random.randrange(4)

    async def consume() -> None:
        if way == 0:
            async with stream:
                async for output in stream:
                    tokens.extend(output.tokens)
                    if len(tokens) > num_outputs:
                        return
        async for output in stream:
            tokens.extend(output.tokens)
            if len(tokens) > num_outputs:
                break
        if way == 1:
            await stream.aclose()

    task = asyncio.create_task(consume())
    if way == 2:
        await asyncio.sleep(random.random() * 0.005)
        task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


def test_hundreds_of_consumers_go_away_at_random() -> None:
    async def main() -> None:
        random = Random(1)

        async def one(number: int) -> None:
            await asyncio.sleep(random.random() * 0.2)
            stream = await served.add_request(request_of(number, 30))
            if number % 4 == 0:
                assert await read(stream) == expected(number, 30)
                return
            tokens: list[int] = []
            await leave_somehow(stream, random, tokens)
            assert tokens == expected(number, 30)[: len(tokens)]

        async with AsyncEngine(engine, max_waiting=8, max_buffered_tokens=6) as served:
            await asyncio.gather(*[one(number) for number in range(250)])
            gc.collect()
            await until(lambda: served.num_open == 0)
            assert served.num_waiting == 0
            assert engine.num_free_pages == 60
            assert engine.stats().finish_counts[FinishReason.ABORT] > 50

    engine = Bomb().engine(num_pages=60, max_num_seqs=12)  # too few pages for all, so they preempt each other too
    run(main())
    assert_nothing_left(engine, 60)


@pytest.mark.parametrize("max_buffered", [1, 5])
def test_a_consumer_that_does_not_read_blocks_nobody_and_loses_nothing(max_buffered: int) -> None:
    async def main() -> None:
        async with AsyncEngine(engine, max_waiting=1, max_buffered_tokens=max_buffered) as served:
            sleepers = [await served.add_request(request_of(number, 600)) for number in range(4)]
            for number in range(10, 30):
                assert await read(await served.add_request(request_of(number))) == expected(number)
            assert served.num_open == 4
            for number, stream in enumerate(sleepers[:2]):
                outputs = stream.ready()
                assert max_buffered < len(tokens_of(outputs)) < 600
                async for output in stream:
                    outputs.append(output)
                    await asyncio.sleep(random.choice([0, 0, 0, 0.0005]))
                assert tokens_of(outputs) == expected(number, 600)
            await sleepers[3].aclose()
            assert served.num_open == 1

    random, engine = Random(0), Bomb().engine(num_pages=300, max_length=1000, max_num_seqs=2)
    run(main())
    assert_nothing_left(engine, 300)


def test_a_wait_that_times_out_loses_nothing() -> None:
    async def main() -> None:
        random, num_timeouts = Random(2), 0
        async with AsyncEngine(engine, max_buffered_tokens=4) as served:
            for number in range(20):
                stream, outputs = await served.add_request(request_of(number, 40)), list[StepOutput]()
                while not (outputs and outputs[-1].finish_reason):
                    try:
                        outputs.append(await asyncio.wait_for(anext(stream), random.random() * 0.002))
                    except TimeoutError:
                        num_timeouts += 1
                assert tokens_of(outputs) == expected(number, 40)
                assert outputs[-1].finish_reason is FinishReason.LENGTH
        assert num_timeouts > 10

    engine = Bomb(pause=0.002).engine()
    run(main())
    assert_nothing_left(engine)


def test_two_readers_of_one_stream_get_every_output_once() -> None:
    async def main() -> None:
        async with AsyncEngine(Bomb().engine()) as served:
            stream = await served.add_request(request_of(5, 40))
            parts = await asyncio.gather(read(stream), read(stream))
            assert sorted(parts[0] + parts[1]) == sorted(expected(5, 40))

    run(main())


def test_a_lost_stream_is_withdrawn() -> None:
    """They are held, so they do not end by themselves."""

    async def main() -> None:
        async with AsyncEngine(engine, max_buffered_tokens=4) as served:
            streams: list[TokenStream | None] = [await served.add_request(request_of(n, 900)) for n in range(3)]
            cycle: list[Any] = [streams[1]]
            cycle.append(cycle)
            streams[0] = streams[1] = None
            del cycle
            gc.collect()
            await until(lambda: served.num_open == 1)
            assert engine.stats().finish_counts == {FinishReason.ABORT: 2}
            assert streams[2] is not None
            assert await read(streams[2]) == expected(2, 900)

    engine = Bomb().engine(max_length=1000)
    run(main())
    assert_nothing_left(engine)


def test_an_async_generator_that_is_dropped_withdraws_its_request() -> None:
    async def main() -> None:
        async def generate() -> Any:
            async with await served.add_request(request_of(0, 900)) as stream:
                async for output in stream:
                    yield output

        async with AsyncEngine(engine, max_buffered_tokens=4) as served:
            async for _ in generate():
                break
            await until(lambda: served.num_open == 0)
            assert engine.stats().finish_counts == {FinishReason.ABORT: 1}

    engine = Bomb().engine(max_length=1000)
    run(main())
    assert_nothing_left(engine)


PLACES = ["forward", "plan", "observe", "propose", "records"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", [RuntimeError, SystemExit], ids=["error", "exit"])
def test_a_death_is_told_to_everybody(place: str, kind: type[BaseException], capfd: pytest.CaptureFixture[str]) -> None:
    error = kind("out of\nluck")
    bomb = Bomb(place, error)

    async def is_told(call: Awaitable[Any]) -> bool:
        with pytest.raises(EngineDeadError) as caught:
            await call
        return caught.value.__cause__ is error and type(error).__name__ in str(caught.value)

    async def main() -> None:
        engine = bomb.engine(num_pages=6400, max_length=1000, max_num_seqs=18, num_drafted=1)
        async with AsyncEngine(engine, max_waiting=2) as served:
            streams = [await served.add_request(request_of(number, 900)) for number in range(20)]
            readers = [asyncio.create_task(is_told(read(stream))) for stream in streams]
            callers = [asyncio.create_task(is_told(served.add_request(request_of(0)))) for _ in range(5)]
            await until(lambda: served.num_waiting == 7)  # two have no place in a step, five wait outside
            bomb.is_armed.set()
            assert all(await asyncio.gather(*readers, *callers))
            assert await is_told(served.add_request(request_of(0)))
            assert await is_told(anext(streams[0]))
            assert not served.is_alive
            for stream in streams:
                await stream.aclose()

    run(main())
    assert "Traceback" not in capfd.readouterr().err


def test_what_came_before_a_death_can_be_read() -> None:
    bomb = Bomb("forward", RuntimeError("tired"))

    async def main() -> None:
        async with AsyncEngine(bomb.engine(max_length=1000), max_buffered_tokens=20) as served:
            held = await served.add_request(request_of(0, 200))
            ended = await served.add_request(request_of(1, 5))
            await until(lambda: served.num_open == 1 and not served._engine.has_work)
            bomb.is_armed.set()
            with pytest.raises(EngineDeadError, match="RuntimeError: tired"):
                await read(await served.add_request(request_of(2)))
            assert await read(ended) == expected(1, 5)
            outputs = []
            with pytest.raises(EngineDeadError, match="RuntimeError: tired"):
                async for output in held:
                    outputs.append(output)
            assert len(tokens_of(outputs)) > 20
            assert tokens_of(outputs) == expected(0, 200)[: len(tokens_of(outputs))]

    run(main())


def test_deaths_races_and_closes_never_hang() -> None:
    """Consumers, callers, a death and a close, in any order within a millisecond."""

    async def main() -> None:
        for seed in range(60):
            random, bomb = Random(seed), Bomb(Random(seed).choice(PLACES), RuntimeError("planted"))
            served = AsyncEngine(bomb.engine(max_length=1000, num_pages=2000, max_num_seqs=4), max_waiting=3)

            async def consume(number: int, random: Random = random, served: AsyncEngine = served) -> None:
                await asyncio.sleep(random.random() * 0.01)
                async with await served.add_request(request_of(number, 500)) as stream:
                    async for _ in stream:
                        pass

            async def strike(random: Random = random, served: AsyncEngine = served, bomb: Bomb = bomb) -> None:
                await asyncio.sleep(random.random() * 0.01)
                if random.random() < 0.6:
                    bomb.is_armed.set()
                await asyncio.sleep(random.random() * 0.005)
                await served.close()

            results = await asyncio.gather(*[consume(n) for n in range(8)], strike(), return_exceptions=True)
            assert {type(each) for each in results} <= {type(None), EngineDeadError}
            assert not served.is_alive
            assert served.num_open == 0

    run(main())


def test_close_ends_open_streams_as_withdrawn() -> None:
    async def main() -> None:
        served = AsyncEngine(engine, max_waiting=2, max_buffered_tokens=1000)
        streams = [await served.add_request(request_of(number, 900)) for number in range(6)]
        caller = asyncio.create_task(served.add_request(request_of(0)))
        await until(lambda: served.num_waiting == 3)
        readers = [asyncio.create_task(read(stream)) for stream in streams[:3]]
        await asyncio.gather(served.close(), served.close())
        for number, reader in enumerate(readers):
            tokens = await reader
            assert tokens == expected(number, 900)[: len(tokens)]
        outputs = [output async for output in streams[3]]
        assert outputs[-1].finish_reason is FinishReason.ABORT
        for call in (caller, served.add_request(request_of(0))):
            with pytest.raises(EngineDeadError, match="was closed"):
                await call
        await served.close()

    engine = Bomb().engine(num_pages=6400, max_length=1000, max_num_seqs=4)
    run(main())
    assert_nothing_left(engine, 6400)


def engine_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "paceline-engine"]


@pytest.mark.parametrize("is_held", [False, True])
def test_a_closed_loop_ends_the_thread(is_held: bool, capfd: pytest.CaptureFixture[str]) -> None:
    kept: list[Any] = []

    async def main() -> None:
        served = AsyncEngine(engine, max_buffered_tokens=5 if is_held else 5000)
        stream = await served.add_request(request_of(0, 900))
        kept.extend([served, stream, *engine_threads()])
        if is_held:
            await until(lambda: not engine.has_work)

    engine = Bomb().engine(num_pages=400, max_length=1000)
    run(main())
    _served, stream, thread = kept
    if is_held:  # it sleeps, until it is told that nobody is left
        with pytest.raises(UsageError, match="another event loop"):
            run(anext(stream))
        kept.clear()
        del _served, stream
        gc.collect()
    thread.join(GUARD)
    assert not thread.is_alive()
    assert_nothing_left(engine)
    assert capfd.readouterr().err == ""


def test_a_forgotten_engine_ends() -> None:
    async def main() -> None:
        served = AsyncEngine(engine)
        stream = await served.add_request(request_of(0, 40))
        [thread] = engine_threads()
        del served
        assert await read(stream) == expected(0, 40)  # a stream keeps it alive
        del stream
        gc.collect()
        await asyncio.to_thread(thread.join, GUARD)
        assert not thread.is_alive()

    engine = Bomb().engine()
    run(main())
    assert_nothing_left(engine)


def test_another_loop_is_refused() -> None:
    async def main() -> None:
        async with AsyncEngine(Bomb().engine()) as served:
            stream = await served.add_request(request_of(0, 40))
            for call in (served.add_request(request_of(1)), anext(stream), stream.aclose(), served.close()):
                with pytest.raises(UsageError, match="another event loop"):
                    await asyncio.to_thread(asyncio.run, call)
            assert await read(stream) == expected(0, 40)

    async def idle() -> None:
        async with AsyncEngine(Bomb().engine()) as served:
            await read(await served.add_request(request_of(0)))
            assert await asyncio.to_thread(served.stats) == served.stats()

    run(main())
    run(idle())


def test_a_forked_child_is_told() -> None:
    async def fails(call: Awaitable[Any]) -> bool:
        try:
            await call
        except EngineDeadError as error:
            return "fork" in str(error)
        return False

    async def main() -> None:
        async with AsyncEngine(Bomb().engine(max_length=1000)) as served:
            stream = await served.add_request(request_of(0, 900))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, in newer Pythons
                child = os.fork()
            if child == 0:
                signal.alarm(int(GUARD))
                status = 1
                try:
                    is_told = [await fails(served.add_request(request_of(1))), await fails(read(stream))]
                    await stream.aclose()
                    await served.close()
                    status = 0 if all(is_told) else 2
                finally:
                    os._exit(status)
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            assert await read(stream) == expected(0, 900)[:900]

    run(main())


def test_nothing_grows() -> None:
    async def main() -> None:
        async with AsyncEngine(engine, max_waiting=16) as served:

            async def one(number: int) -> None:
                assert await read(await served.add_request(request_of(number % 50, 3))) == expected(number % 50, 3)

            for start in range(0, 2000, 250):
                await asyncio.gather(*[one(number) for number in range(start, start + 250)])
            assert served.num_open == served.num_waiting == len(served._requests) == 0
            assert not served._thread._sequences
            assert not served._thread._tickets
            gc.collect()
            assert not [each for each in gc.get_objects() if isinstance(each, Channel | TokenStream)]

    gc.collect()
    engine = Bomb().engine()
    run(main())
    assert_nothing_left(engine)
