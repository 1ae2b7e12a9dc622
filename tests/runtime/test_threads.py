"""Threads and processes around the native runtime: more of them than processors, moved, forked, interrupted, ended."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gguf_files import write_tiny_llama

from paceline import LLM, SamplingParams
from paceline.models import open_model
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.runtime.threads import default_num_threads

TOKENS = tuple(range(3, 33))
SEGMENT = Segment(0, 0, (0, 1), TOKENS, logits_rows=(5, 29))
PATIENCE = 300  # seconds after which a test takes what it waits for to hang
TASKS = Path("/proc/self/task")

needs_proc = pytest.mark.skipif(not TASKS.is_dir(), reason="this system does not list the threads of a process")
needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")


def load(path: Path, **options: object) -> NativeRuntime:
    with open_model(path) as model:
        return NativeRuntime.load(model, NativeOptions(**options))  # type: ignore[arg-type]


def compute(runtime: NativeRuntime) -> np.ndarray:
    return runtime.forward([SEGMENT]).logits.copy()


def thread_ids() -> set[int]:
    return {int(path.name) for path in TASKS.iterdir()}


def run_in_threads(*works: Callable[[], object]) -> None:
    """Run them beside each other; what one of them raises is raised."""
    with ThreadPoolExecutor(len(works)) as executor:
        for future in [executor.submit(work) for work in works]:
            future.result(PATIENCE)


def succeeds_in_child(check: Callable[[], bool]) -> bool:
    """Whether `check` holds in a forked child; it is ended where it hangs."""
    child = os.fork()
    if child == 0:  # no pytest in here: leave by _exit, whatever happens
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE)
            status = int(not check())
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


@contextmanager
def forwards_elsewhere(runtime: NativeRuntime, expected: np.ndarray) -> Iterator[None]:
    """Within its block another thread runs one forward after the other. All of them must have been right."""
    is_over, has_begun = threading.Event(), threading.Event()
    outcomes: list[bool] = []

    def work() -> None:
        while not is_over.is_set():
            outcomes.append(np.array_equal(compute(runtime), expected))
            has_begun.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        assert has_begun.wait(PATIENCE)
        yield
    finally:
        is_over.set()
        thread.join(PATIENCE)
    assert not thread.is_alive(), "a forward hangs"
    assert outcomes and all(outcomes)


def test_more_threads_than_processors(tiny_llama_path: Path) -> None:
    one = compute(load(tiny_llama_path, num_threads=1))
    many = load(tiny_llama_path, num_threads=64)
    for _ in range(20):
        np.testing.assert_array_equal(compute(many), one)


@needs_affinity
def test_default_threads_follow_the_affinity(tiny_llama_path: Path) -> None:
    everything = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(everything)})
        assert default_num_threads() == 1
        assert load(tiny_llama_path).num_threads == 1
    finally:
        os.sched_setaffinity(0, everything)
    assert 1 <= default_num_threads() <= len(everything)


@needs_proc
@needs_affinity
def test_the_affinity_changes_while_a_forward_runs(tiny_llama_path: Path) -> None:
    """All threads onto one processor, then each onto one of its own, then wherever they like, over and over."""
    everything = sorted(os.sched_getaffinity(0))
    before = thread_ids()
    runtime = load(tiny_llama_path, num_threads=4)
    workers = sorted(thread_ids() - before)
    assert len(workers) == 3
    places = [{everything[0]}, {everything[-1]}, set(everything)]
    try:
        with forwards_elsewhere(runtime, compute(runtime)):
            for round_number in range(60):
                for worker in thread_ids() - (before - {os.getpid()}):
                    os.sched_setaffinity(worker, places[round_number % 3])
                for index, worker in enumerate(workers):
                    os.sched_setaffinity(worker, {everything[index % len(everything)]})
    finally:
        for worker in thread_ids():
            os.sched_setaffinity(worker, everything)


def test_two_models_at_once(tmp_path: Path) -> None:
    """Different models in two Python threads, each with threads of its own."""
    runtimes = []
    for seed in range(2):
        write_tiny_llama(tmp_path / f"{seed}.gguf", seed=seed)
        runtimes.append(load(tmp_path / f"{seed}.gguf", num_threads=4))
    expected = [compute(runtime) for runtime in runtimes]
    assert not np.array_equal(*expected)

    def work(index: int) -> None:
        for _ in range(50):
            np.testing.assert_array_equal(compute(runtimes[index]), expected[index])

    run_in_threads(partial(work, 0), partial(work, 1))


def test_two_models_answer_at_once(tiny_llama_path: Path) -> None:
    llms = [LLM(tiny_llama_path, num_threads=2, speculation="ngram") for _ in range(2)]
    params = SamplingParams(max_tokens=40, ignore_eos=True)
    [expected] = llms[0].generate("to the end of the world and to the end of", params)

    def work(llm: LLM) -> None:
        for _ in range(5):
            [answer] = llm.generate("to the end of the world and to the end of", params)
            assert answer.token_ids == expected.token_ids

    run_in_threads(partial(work, llms[0]), partial(work, llms[1]))


def test_a_second_caller_is_refused(tiny_llama_path: Path) -> None:
    """forward lets other Python threads run: whoever comes meanwhile gets an error, not the wrong numbers."""
    runtime = load(tiny_llama_path, num_threads=2)
    expected = compute(runtime)
    prompt = Segment(0, 0, tuple(range(16)), tuple(range(250)))
    refusals: list[str] = []

    def work() -> None:
        for _ in range(100):
            try:
                runtime.forward([prompt])
            except RuntimeError as error:
                refusals.append(str(error))

    run_in_threads(*[work] * 4)
    assert refusals
    assert all("in use by another thread" in refusal for refusal in refusals)
    np.testing.assert_array_equal(compute(runtime), expected)


@needs_proc
def test_a_dropped_runtime_leaves_no_thread(tiny_llama_path: Path) -> None:
    before = thread_ids()
    for _ in range(100):
        runtime = load(tiny_llama_path, num_threads=8)
        assert len(thread_ids() - before) == 7
        runtime.forward([SEGMENT])
        del runtime
    assert thread_ids() <= before


@needs_proc
def test_threads_that_were_never_used_end_too(tiny_llama_path: Path) -> None:
    before = thread_ids()
    with open_model(tiny_llama_path) as model:
        runtimes = [NativeRuntime(model.config, NativeOptions(num_threads=8)) for _ in range(10)]
    assert len(thread_ids() - before) == 70
    del runtimes
    gc.collect()
    assert thread_ids() <= before


@pytest.mark.parametrize("num_threads", [1, 3])
def test_a_forked_child_computes_too(tiny_llama_path: Path, num_threads: int) -> None:
    """And so does its own child, and its parent afterwards."""
    runtime = load(tiny_llama_path, num_threads=num_threads)
    expected = compute(runtime)

    def is_right() -> bool:
        return np.array_equal(compute(runtime), expected)

    assert succeeds_in_child(lambda: is_right() and succeeds_in_child(is_right) and is_right())
    assert is_right()


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_forked_child_with_threads_of_its_own(tiny_llama_path: Path, is_dropped: bool) -> None:
    """The child's threads may get the stacks and handles of those that the fork did not take along."""
    runtimes = [load(tiny_llama_path, num_threads=8)]
    expected = compute(runtimes[0])

    def is_right() -> bool:
        event = threading.Event()
        for _ in range(4):
            threading.Thread(target=event.wait, daemon=True).start()
        if not is_dropped:
            return np.array_equal(compute(runtimes[0]), expected)
        runtimes.clear()
        gc.collect()
        return True

    assert succeeds_in_child(is_right)


def test_a_fork_in_the_middle_of_an_answer(tiny_llama_path: Path) -> None:
    """Parent and child each finish the same stream, from the same keys and values, without seeing each other."""
    llm = LLM(tiny_llama_path, num_threads=3, speculation="ngram")
    params = SamplingParams(max_tokens=60, ignore_eos=True)
    [expected] = llm.generate("hello world", params)
    stream = llm.stream("hello world", params)
    next(stream)

    def finishes() -> bool:
        for _ in stream:
            pass
        is_same = stream.output().token_ids == expected.token_ids
        return is_same and llm.generate("hello world", params)[0].token_ids == expected.token_ids

    assert succeeds_in_child(finishes)
    assert finishes()


def test_forks_while_forwards_run_elsewhere(tiny_llama_path: Path) -> None:
    """What is in use by a thread that the fork left behind stays refused; another model computes; both can be freed."""
    busy, idle = load(tiny_llama_path, num_threads=3), load(tiny_llama_path, num_threads=3)
    expected = compute(idle)
    runtimes = [busy, idle]

    def is_right() -> bool:
        try:
            is_sound = np.array_equal(compute(runtimes[0]), expected)
        except RuntimeError as error:
            is_sound = "in use by another thread" in str(error)
        is_sound = is_sound and np.array_equal(compute(runtimes[1]), expected)
        runtimes.clear()
        gc.collect()
        return is_sound

    with forwards_elsewhere(busy, expected):
        outcomes = [succeeds_in_child(is_right) for _ in range(10)]
    assert all(outcomes)


def test_multiprocessing_by_fork(tiny_llama_path: Path) -> None:
    runtime = load(tiny_llama_path, num_threads=3)
    expected = compute(runtime)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    children = [context.Process(target=lambda: queue.put(compute(runtime))) for _ in range(3)]
    for child in children:
        child.start()
    np.testing.assert_array_equal(compute(runtime), expected)
    for child in children:
        child.join(PATIENCE)
        assert child.exitcode == 0
        np.testing.assert_array_equal(queue.get(), expected)


WAITS_FOR_SIGNALS = """
import os, signal, sys
from pathlib import Path
from paceline import LLM, SamplingParams

llm = LLM(Path(sys.argv[1]), num_threads=4)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.kill(os.getpid(), signal.SIGTERM)
llm.generate("hello", SamplingParams(max_tokens=3))
print(signal.sigtimedwait({signal.SIGTERM}, 60).si_signo == signal.SIGTERM)
"""


def test_signals_are_left_to_the_programs_own_threads(tiny_llama_path: Path) -> None:
    """A program that blocks a signal and waits for it gets it. A worker that had it unblocked would end the process."""
    result = subprocess.run(
        [sys.executable, "-c", WAITS_FOR_SIGNALS, str(tiny_llama_path)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, b"True\n", b"")


def blocked_signals(thread: int) -> set[signal.Signals]:
    status = (TASKS / str(thread) / "status").read_text()
    [mask] = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk")]
    return {number for number in signal.Signals if mask >> (number - 1) & 1}


@needs_proc
def test_which_signals_workers_take(tiny_llama_path: Path) -> None:
    """Faults of their own only, whatever made them: those must reach the handlers that report them."""
    before, own_mask = thread_ids(), signal.pthread_sigmask(signal.SIG_BLOCK, [])
    runtime = load(tiny_llama_path, num_threads=3)
    workers = thread_ids() - before
    assert len(workers) == runtime.num_threads - 1
    faults = {
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGABRT,
        signal.SIGTRAP,
        signal.SIGSYS,
    }
    expected = set(signal.Signals) - faults - {signal.SIGKILL, signal.SIGSTOP}
    deadline = time.monotonic() + PATIENCE
    for worker in workers:
        while blocked_signals(worker) != expected:  # for a moment, a thread that starts has all of them blocked
            assert time.monotonic() < deadline, blocked_signals(worker) ^ expected
            time.sleep(0.01)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == own_mask
