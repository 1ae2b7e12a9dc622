"""The options of `paceline generate` and `chat` that say how tokens are drawn: each reaches the sampler."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline import LLM, SamplingParams

Invoke = Callable[..., Any]  # see conftest.py
SAMPLED = {"temperature": 1.5, "seed": 7}
CHOICES: list[dict[str, Any]] = [
    {},
    {"top_p": 0.4},
    {"top_k": 3},
    {"min_p": 0.6},
    {"top_k": 9, "min_p": 0.3, "top_p": 0.9},
]


def options_of(params: dict[str, Any]) -> list[object]:
    return [word for name, value in params.items() for word in (f"--{name.replace('_', '-')}", value)]


def test_answers_are_those_of_the_parameters(generate_json: Invoke, flat_llama_path: Path) -> None:
    llm, texts = LLM(flat_llama_path), set()
    for choice in CHOICES:
        params = {**SAMPLED, **choice}
        answer = generate_json("-m", flat_llama_path, "--no-chat", "--max-tokens", 16, *options_of(params), "hello")
        [expected] = llm.generate("hello", SamplingParams(max_tokens=16, **params))
        assert (tuple(answer["token_ids"]), answer["sample_seed"]) == (tuple(expected.token_ids), 7)
        texts.add(answer["text"])
    assert len(texts) == len(CHOICES)


@pytest.mark.parametrize("option", [("--top-k", 1), ("--min-p", 1), ("--top-p", 1e-9)])
def test_only_the_likeliest_is_left(invoke: Invoke, flat_llama_path: Path, option: tuple[str, object]) -> None:
    arguments = ("-m", flat_llama_path, "--max-tokens", 8)
    for command, given in (("generate", {}), ("chat", {"input": b"hello\n"})):
        prompt = ("hello",) if command == "generate" else ()
        greedy = invoke(command, *arguments, *prompt, **given)
        drawn, cut = (
            invoke(command, *arguments, *options_of(SAMPLED), *extra, *prompt, **given) for extra in ((), option)
        )
        assert [result.exit_code for result in (greedy, drawn, cut)] == [0, 0, 0]
        assert cut.stdout == greedy.stdout != drawn.stdout


@pytest.mark.parametrize("command", ["generate", "chat"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--top-k", -2), "--top-k is -2; expected an integer of at least -1"),
        (("--min-p", 1.5), "--min-p is 1.5; expected a number from 0 to 1"),
        (("--min-p", "nan"), "--min-p is nan; expected a number from 0 to 1"),
        (("--top-p", 0), "--top-p is 0.0; expected a number above 0, at most 1"),
        (("--temperature", 3), "--temperature is 3.0; expected 0 or a number from 1e-06 to 2"),
        (("--seed", -1), "--seed is -1; expected None or an integer from 0 to 18446744073709551615"),
    ],
)
def test_what_is_out_of_range_is_refused(
    invoke: Invoke, command: str, arguments: tuple[object, ...], message: str
) -> None:
    result = invoke(command, "-m", "/nowhere.gguf", *arguments, *(("hello",) if command == "generate" else ()))
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"paceline: {message}\n")
