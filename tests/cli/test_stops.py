"""`paceline generate --stop --min-tokens`: where an answer ends, with drafts and without."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gguf_files import write_tiny_llama

Invoke = Callable[..., Any]  # see conftest.py
LOOP = "to the end of the world and to the end of the world and to"
TO = 267  # the token " to", with which the tiny model answers LOOP over and over
NUM_TOKENS = 30
ANSWER = ("--no-chat", "--max-tokens", NUM_TOKENS, LOOP)


@pytest.fixture(params=["off", "ngram"])
def loop(request: pytest.FixtureRequest, tiny_llama_path: Path) -> tuple[object, ...]:
    return "-m", tiny_llama_path, "--proposer", request.param, *ANSWER


@pytest.fixture(scope="module")
def short_llama_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model whose answer to LOOP is its end-of-text token alone."""
    path = tmp_path_factory.mktemp("models") / "short.gguf"
    write_tiny_llama(path, extra_metadata={"tokenizer.ggml.eos_token_id": TO})
    return path


@pytest.mark.parametrize(
    ("stops", "text", "num_tokens"),
    [
        (["o t"], " t", 2),
        ([" to to to to to to to"], "", 7),
        (["absent", "o to to to", "to to to "], " ", 4),  # one token completes two: the one that begins first
        (["o", "to", "t"], " ", 1),
        (["to the"], " to" * NUM_TOKENS, NUM_TOKENS),
    ],
)
def test_text_ends_before_a_stop_string(
    invoke: Invoke, generate_json: Invoke, loop: tuple[object, ...], stops: list[str], text: str, num_tokens: int
) -> None:
    options = [word for stop in stops for word in ("--stop", stop)]
    answer = generate_json(*loop, *options)
    assert (answer["text"], answer["token_ids"]) == (text, [TO] * num_tokens)
    assert answer["finish_reason"] == ("stop" if num_tokens < NUM_TOKENS else "length")
    assert answer["usage"]["completion_tokens"] == num_tokens
    shown = invoke("generate", *loop, *options)
    assert (shown.exit_code, shown.stdout) == (0, f"{text}\n")


def test_a_stop_string_at_the_limit_is_a_stop(generate_json: Invoke, loop: tuple[object, ...]) -> None:
    answer = generate_json(*loop, "--stop", " to" * NUM_TOKENS)
    assert (answer["text"], answer["finish_reason"]) == ("", "stop")
    assert answer["usage"]["completion_tokens"] == NUM_TOKENS


@pytest.mark.parametrize(("stop", "text"), [("to", " to to to to "), ("to to to", " to to "), ("o", " to to to to t")])
def test_stop_strings_count_only_behind_the_least_tokens(
    invoke: Invoke, generate_json: Invoke, loop: tuple[object, ...], stop: str, text: str
) -> None:
    arguments = (*loop, "--stop", stop, "--min-tokens", 4)
    answer = generate_json(*arguments)
    assert (answer["text"], answer["token_ids"]) == (text, [TO] * 5)  # one that began before may end behind
    assert answer["finish_reason"] == "stop"
    assert invoke("generate", *arguments).stdout == f"{text}\n"


@pytest.mark.parametrize("proposer", ["off", "ngram"])
def test_the_end_of_text_waits_for_the_least_tokens(
    generate_json: Invoke, short_llama_path: Path, proposer: str
) -> None:
    arguments = ("-m", short_llama_path, "--proposer", proposer, *ANSWER)
    assert generate_json(*arguments)["token_ids"] == [TO]
    for num_tokens in (1, 4):
        answer = generate_json(*arguments, "--min-tokens", num_tokens)
        assert TO not in answer["token_ids"][:num_tokens]
        assert len(answer["token_ids"]) > num_tokens
    longest = generate_json(*arguments, "--min-tokens", NUM_TOKENS)
    assert TO not in longest["token_ids"]
    assert longest["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--stop", ""), "stop holds ''"),
        (("--stop", "x" * 1025), "stop holds a text of 1,025 characters"),
        (("--min-tokens", -1), "--min-tokens is -1; expected an integer of at least 0"),
        (("--min-tokens", 257), "--min-tokens is 257, more than --max-tokens; expected 0 to 256"),
    ],
)
def test_what_cannot_be_is_refused_before_a_model_is_sought(
    invoke: Invoke, arguments: tuple[object, ...], message: str
) -> None:
    result = invoke("generate", "-m", "/nowhere.gguf", "hello", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"paceline: {message}")
    assert result.stderr.count("\n") == 1
