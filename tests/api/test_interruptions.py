"""Interrupts, finalisers and other threads in the middle of things: no answer with a hole, no page lost."""

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from paceline import LLM, SamplingParams, Speculation, UsageError

PROMPT = "the and of to in hello world the and of to in hello world the and of"
PARAMS = SamplingParams(max_tokens=40, ignore_eos=True)


@pytest.fixture
def llm(tiny_llama_path: Path) -> LLM:
    return LLM(tiny_llama_path, speculation=Speculation("ngram", 4, {"min_match": 1}))


def interrupt_at(num_lines: int) -> Callable[[FrameType, str, object], object]:
    """A tracer that raises KeyboardInterrupt at the n-th line run in this package."""
    left = num_lines

    def tracer(frame: FrameType, event: str, _argument: object) -> object:
        nonlocal left
        if "paceline" not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return tracer

    return tracer


def test_an_interrupt_at_any_line(llm: LLM) -> None:
    """A prefix of the true answer, ended as such; the next request gets all of its own, and every page comes back."""
    [expected] = llm.generate(PROMPT, PARAMS)
    num_free = llm._engine.num_free_pages
    outcomes = set()
    for num_lines in range(150, 1000, 13):
        stream = llm.stream(PROMPT, PARAMS)
        previous = sys.gettrace()
        sys.settrace(interrupt_at(num_lines))
        try:
            for _ in stream:
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(previous)
        for _ in stream:  # the caller goes on, as if nothing had happened
            pass
        output = stream.output()
        outcomes.add(output.finish_reason)
        assert output.token_ids == expected.token_ids[: len(output.token_ids)]
        assert output.finish_reason == "abort" or output.token_ids == expected.token_ids
        assert llm.generate(PROMPT, PARAMS)[0].token_ids == expected.token_ids
        assert llm._engine.num_free_pages == num_free
        llm._engine.check_integrity()
    assert outcomes == {"abort", "length"}  # after a commit, and before one


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
