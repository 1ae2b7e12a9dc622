"""Ctrl-C, closed pipes and SIGTERM: what was written so far stands, and nothing else is said."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.engine import Engine, StepOutput

Invoke = Callable[..., Any]  # see conftest.py
ENDLESS = ("--no-chat", "--max-tokens", "1000000")
PATIENCE = 300  # seconds after which a test takes what it waits for to hang
LONG = "a story of nothing " * 4000


@pytest.fixture
def interrupt_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Press Ctrl-C in the middle of these engine steps."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)

    def arrange(*steps: int) -> None:
        step, done = Engine.step, 0

        def interrupted_step(engine: Engine) -> list[StepOutput]:
            nonlocal done
            done += 1
            if done in steps:
                signal.raise_signal(signal.SIGINT)
            return step(engine)

        monkeypatch.setattr(Engine, "step", interrupted_step)

    yield arrange
    signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize("proposer", ["off", "ngram"])
def test_json_is_printed_with_what_there_is(
    invoke: Invoke, interrupt_at: Callable[..., None], long_llama_path: Path, proposer: str
) -> None:
    interrupt_at(20)
    result = invoke("generate", "--json", "-m", long_llama_path, *ENDLESS, "--proposer", proposer, "hi")
    answer = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (130, "")
    assert answer["finish_reason"] == "abort"
    assert answer["usage"]["completion_tokens"] == len(answer["token_ids"]) >= 20
    whole = invoke("generate", "--json", "-m", long_llama_path, "--no-chat", "--max-tokens", "300", "hi")
    assert json.loads(whole.stdout)["text"].startswith(answer["text"])


def test_a_long_prompt_can_be_interrupted(
    invoke: Invoke, interrupt_at: Callable[..., None], long_llama_path: Path
) -> None:
    interrupt_at(3)
    result = invoke("generate", "--json", "-m", long_llama_path, *ENDLESS, "-", input=LONG[:5000].encode())
    answer = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (130, "")
    assert (answer["finish_reason"], answer["text"], answer["token_ids"]) == ("abort", "", [])
    assert answer["timing"] == {"prefill_seconds": None, "decode_seconds": None, "tokens_per_second": None}


def test_a_long_prompt_on_a_terminal(terminal: Invoke, long_llama_path: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text(LONG)
    with prompt.open() as stdin:
        run = terminal("generate", "-m", long_llama_path, *ENDLESS, "-", stdin=stdin)
        run.wait_for("Reading the prompt")
        run.interrupt()
        assert run.finish() == 130
    assert "Traceback" not in run.shown
    assert run.shown.rstrip().endswith("[0 tokens, abort]")


FORWARD = """
import os, signal, sys, threading
from paceline.cli import main
from paceline.runtime.native import NativeRuntime

signal.signal(signal.SIGINT, signal.default_int_handler)
forward, is_begun, is_pressed, num_forwards = NativeRuntime.forward, threading.Event(), threading.Event(), 0

def press():
    is_begun.wait()
    os.kill(os.getpid(), signal.SIGINT)
    is_pressed.set()

def watched(runtime, segments):
    global num_forwards
    num_forwards += 1
    print(num_forwards, file=sys.stderr, flush=True)
    if num_forwards == 3:
        is_begun.set()
    scores = forward(runtime, segments)
    if num_forwards == 3:
        is_pressed.wait()
    return scores

NativeRuntime.forward = watched
threading.Thread(target=press, daemon=True).start()
main()
"""


@pytest.mark.parametrize("prompt", [LONG, "hi"])
def test_an_interrupt_in_the_middle_of_a_forward(long_llama_path: Path, prompt: str) -> None:
    """It lets the forward end, in the prompt as in the answer, and is the end: another one does not begin."""
    arguments = ["generate", "--json", "-m", str(long_llama_path), "--threads", "4", *ENDLESS, "-"]
    command = [sys.executable, "-c", FORWARD, *arguments]
    result = subprocess.run(command, input=prompt.encode(), capture_output=True, timeout=PATIENCE, check=False)
    assert (result.returncode, result.stderr) == (130, b"1\n2\n3\n")
    answer = json.loads(result.stdout)
    assert answer["finish_reason"] == "abort"
    assert len(answer["token_ids"]) <= 3


def test_an_answer_can_be_interrupted(spawn_open: Invoke, long_llama_path: Path) -> None:
    with spawn_open("generate", "-m", long_llama_path, *ENDLESS, "hi") as process:
        first = process.stdout.read(20)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate()
    assert (process.returncode, errors) == (130, b"")
    assert (first + rest).endswith(b"\n")


def test_a_reader_that_leaves(spawn_open: Invoke, long_llama_path: Path) -> None:
    with spawn_open("generate", "-m", long_llama_path, *ENDLESS, "hi") as process:
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize("arguments", [("models",), ("models", "--json"), ("--version",), ("--help",)])
def test_a_reader_that_never_came(spawn: Invoke, arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = spawn(*arguments, preexec_fn=lambda: os.dup2(writer, 1))
    finally:
        os.close(writer)
    assert result.returncode in (1, 141)
    assert result.stderr == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_it(spawn_open: Invoke, long_llama_path: Path, number: int) -> None:
    with spawn_open("generate", "-m", long_llama_path, *ENDLESS, "hi") as process:
        process.stdout.read(1)
        process.send_signal(number)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (128 + number, b"")


HURRIED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from paceline.cli import main

class Presser:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Presser())
main()
"""


@pytest.mark.parametrize("module", ["typer", "paceline.cli.app", "paceline.cli.generate", "numpy", "paceline.api.llm"])
def test_an_interrupt_while_modules_are_imported(module: str) -> None:
    command = [sys.executable, "-c", HURRIED, "generate", "-m", "missing.gguf", module]
    result = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (130, b"", b"")


GOODBYE = """
import atexit, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
from paceline.cli import main
main()
"""


def test_an_interrupt_after_the_end_changes_nothing(tiny_llama_path: Path) -> None:
    command = [sys.executable, "-c", GOODBYE, "generate", "-m", str(tiny_llama_path), "hi"]
    result = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout
