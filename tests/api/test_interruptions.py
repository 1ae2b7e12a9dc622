"""Interrupts, finalisers and other threads in the middle of things: no answer with a hole, no page lost."""

import gc
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from time import perf_counter
from types import FrameType

import pytest
from gguf_files import write_tiny_llama

from paceline import LLM, SamplingParams, Speculation, UsageError

PROMPT = "the and of to in hello world the and of to in hello world the and of"
PARAMS = SamplingParams(max_tokens=40, ignore_eos=True)


@pytest.fixture
def llm(tiny_llama_path: Path) -> LLM:
    return LLM(tiny_llama_path, speculation=Speculation("ngram", 4, {"min_match": 1}))


@pytest.fixture(autouse=True)
def no_gc_callbacks() -> Iterator[None]:
    """An interrupt that strikes in one of other people's is reported, not raised; property tests leave some there."""
    callbacks, gc.callbacks[:] = gc.callbacks[:], []
    yield
    gc.callbacks[:] = callbacks


def is_interrupted(work: Callable[[], object], seconds: float) -> bool:
    """Run `work`; a real signal raises KeyboardInterrupt in it after `seconds`, if it still runs. Whether it did."""
    is_armed = True

    def strike(_number: int, _frame: FrameType | None) -> None:
        if is_armed:
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, strike)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            work()
        finally:
            is_armed = False
    except KeyboardInterrupt:
        return True
    finally:
        is_armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    return False


def test_an_interrupt_while_a_stream_is_read(llm: LLM) -> None:
    """A prefix of the true answer, ended as such; the next request gets all of its own, and every page comes back."""
    started = perf_counter()
    [expected] = llm.generate(PROMPT, PARAMS)
    duration = perf_counter() - started
    num_free = llm._engine.num_free_pages
    random = Random(0)
    for _ in range(150):
        stream = llm.stream(PROMPT, PARAMS)
        is_interrupted(lambda: list(stream), max(1e-5, random.random() * duration))  # noqa: B023 (called at once)
        for _ in stream:  # the caller goes on, as if nothing had happened
            pass
        output = stream.output()
        assert output.token_ids == expected.token_ids[: len(output.token_ids)]
        assert output.finish_reason == "abort" or output.token_ids == expected.token_ids
        assert llm.generate(PROMPT, PARAMS)[0].token_ids == expected.token_ids
        assert llm._engine.num_free_pages == num_free
        llm._engine.check_integrity()


def test_a_stream_lost_in_a_cycle_is_collected_at_any_moment(llm: LLM) -> None:
    class Box:
        """Holds itself, so that only the cyclic collector can free what else it holds."""

    [expected] = llm.generate(PROMPT, PARAMS)
    num_free = llm._engine.num_free_pages
    threshold = gc.get_threshold()
    try:
        for generation in range(20, 60):
            lost = llm.stream(PROMPT, PARAMS)
            next(lost)
            box = Box()
            box.stream, box.box = lost, box  # type: ignore[attr-defined]
            del lost, box
            gc.set_threshold(generation, 1, 1)
            other = llm.stream(PROMPT, PARAMS)
            for _ in other:
                pass
            gc.set_threshold(*threshold)
            assert other.output().token_ids == expected.token_ids
            del other
            gc.collect()
            assert llm._engine.num_free_pages == num_free
            llm._engine.check_integrity()
    finally:
        gc.set_threshold(*threshold)


def test_a_dropped_model_is_freed_at_once(tiny_llama_path: Path) -> None:
    gc.disable()
    try:
        llm = LLM(tiny_llama_path, speculation="ngram")
        llm.generate(PROMPT, SamplingParams(max_tokens=2))
        runtime = weakref.ref(llm.runtime)
        del llm
        assert runtime() is None
    finally:
        gc.enable()


def test_a_second_thread_is_refused(llm: LLM) -> None:
    [expected] = llm.generate(PROMPT, PARAMS)
    refused: list[UsageError] = []
    answers = []

    def work() -> None:
        for _ in range(30):
            try:
                answers.append(llm.generate(PROMPT, PARAMS)[0])
            except UsageError as error:
                refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused
    assert "another thread" in str(refused[0])
    complete = [answer for answer in answers if answer.finish_reason == "length"]
    assert all(answer.token_ids == expected.token_ids for answer in complete)
    [after] = llm.generate(PROMPT, PARAMS)
    assert after.token_ids == expected.token_ids
    llm._engine.check_integrity()


def test_an_interrupt_anywhere_in_a_call(llm: LLM) -> None:
    """From the first line to the last: the next calls work, and every page comes back."""
    params = SamplingParams(max_tokens=1, ignore_eos=True)
    started = perf_counter()
    [expected] = llm.generate(PROMPT, params)
    duration = perf_counter() - started
    num_free = llm._engine.num_free_pages
    random = Random(0)
    num_interrupts = 0
    for _ in range(600):
        num_interrupts += is_interrupted(lambda: llm.generate(PROMPT, params), max(1e-5, random.random() * duration))
        for _ in range(2):
            assert llm.generate(PROMPT, params)[0].token_ids == expected.token_ids
        assert llm._engine.num_free_pages == num_free
        llm._engine.check_integrity()
    assert num_interrupts > 0


class Bar:
    """A progress that knows whether its stage is open."""

    def __init__(self) -> None:
        self.num_open = 0

    def begin(self, description: str, total: int | None) -> None:  # noqa: ARG002
        self.num_open += 1

    def update(self, done: int) -> None:
        pass

    def end(self) -> None:
        self.num_open -= 1


def test_the_bar_of_a_withdrawn_prompt_is_closed(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "m.gguf", context_length=8192)
    bar = Bar()
    llm = LLM(tmp_path / "m.gguf", progress=bar)
    prompt = [5] * 6000
    for delay in (0.0, 0.01, 0.03):
        stream = llm.stream(prompt, SamplingParams(max_tokens=2))
        closer = threading.Timer(delay, stream.close)
        closer.start()
        try:
            for _ in stream:
                pass
        except UsageError:  # the step met the withdrawal
            pass
        closer.join()
        stream.close()
        assert bar.num_open == 0
    assert len(llm.generate("hello", SamplingParams(max_tokens=2))) == 1
