"""`paceline chat`: from a pipe, and on a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline import LLM, SamplingParams

Invoke = Callable[..., Any]  # see conftest.py


def answers(path: Path, *turns: str, max_tokens: int = 8) -> list[str]:
    """What the model says, with everything before it remembered."""
    llm, messages, said = LLM(path), [], []
    for turn in turns:
        messages.append({"role": "user", "content": turn})
        [output] = llm.chat(messages, SamplingParams(max_tokens=max_tokens))
        messages.append({"role": "assistant", "content": output.text})
        said.append(output.text)
    return said


def as_shown(texts: list[str]) -> str:
    return "".join(text if text.endswith("\n") else f"{text}\n" for text in texts)


@pytest.mark.parametrize("proposer", ["off", "ngram"])
def test_turns_from_a_pipe(invoke: Invoke, long_llama_path: Path, proposer: str) -> None:
    arguments = ("chat", "-m", long_llama_path, "--max-tokens", 8, "--proposer", proposer)
    result = invoke(*arguments, input=b"hello\n\nand the world")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == as_shown(answers(long_llama_path, "hello", "and the world"))


def test_clear_and_exit(invoke: Invoke, long_llama_path: Path) -> None:
    result = invoke("chat", "-m", long_llama_path, "--max-tokens", 8, input=b"hello\n/clear\nhello\n /exit \nhello\n")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == as_shown(answers(long_llama_path, "hello") * 2)


def test_a_base_model_says_so_and_how_to_go_on(invoke: Invoke, plain_llama_path: Path, tmp_path: Path) -> None:
    result = invoke("chat", "-m", plain_llama_path, input=b"hello\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    for words in ("no chat template", "base model", "`paceline generate --no-chat`", "--chat-template FILE"):
        assert words in result.stderr
    file = tmp_path / "mine.jinja"
    file.write_text("{{ messages[-1].content }}", encoding="utf-8")
    result = invoke("chat", "-m", plain_llama_path, "--chat-template", file, "--max-tokens", 4, input=b"hello\n")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"\xff\n", "standard input is not valid UTF-8"),
        (b"?" * 300, "and prompt and answer together may have 256"),
    ],
)
def test_bad_lines_from_a_pipe_end_it(invoke: Invoke, tiny_llama_path: Path, line: bytes, words: str) -> None:
    result = invoke("chat", "-m", tiny_llama_path, input=line)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("paceline: ")
    assert words in result.stderr


@pytest.mark.parametrize("line", ["/usr/bin is a folder", "/usr is full", "/help", "/clear the table"])
def test_what_is_no_command_is_a_message(invoke: Invoke, long_llama_path: Path, line: str) -> None:
    result = invoke("chat", "-m", long_llama_path, "--max-tokens", 8, input=f"{line}\n".encode())
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == as_shown(answers(long_llama_path, line))


def test_on_a_terminal(terminal: Invoke, tiny_llama_path: Path) -> None:
    run = terminal("chat", "-m", tiny_llama_path, "--max-tokens", 4)
    run.wait_for("> ")
    run.type("hello\n")
    run.wait_for("> ", 2)
    assert "[4 tokens" in run.shown
    run.type("/help\n")
    run.wait_for("> ", 3)
    assert "paceline: unknown command '/help'" in run.shown
    run.type("?" * 300 + "\n")
    run.wait_for("> ", 4)
    assert "may have 256" in run.shown
    run.type("\x04")
    assert run.finish() == 0


def test_interrupts_on_a_terminal(terminal: Invoke, long_llama_path: Path) -> None:
    run = terminal("chat", "-m", long_llama_path, "--max-tokens", 1000000)
    run.wait_for("> ")
    run.type("hello\n")
    run.wait_for("hello\n")
    while run.shown.endswith("hello\n"):
        run.wait_for(run.shown[-1], run.shown.count(run.shown[-1]) + 1)  # the answer has begun
    run.interrupt()
    run.wait_for("abort]\n> ")
    assert run.interrupt_to_the_end() == 130
    assert "Traceback" not in run.shown


def test_answers_alone_go_to_a_pipe(terminal: Invoke, tiny_llama_path: Path, tmp_path: Path) -> None:
    with (tmp_path / "answers").open("wb") as stdout:
        run = terminal("chat", "-m", tiny_llama_path, "--max-tokens", 8, stdout=stdout)
        run.wait_for("> ")
        run.type("hello\n")
        run.wait_for("> ", 2)
        run.type("/exit\n")
        assert run.finish() == 0
    assert (tmp_path / "answers").read_text() == as_shown(answers(tiny_llama_path, "hello"))
