"""`paceline generate`: text, JSON, drafts."""

import json
import mmap
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline.models import GGUFFile

Invoke = Callable[..., Any]  # see conftest.py
GREEN = "\x1b[32m"
LOOP = "to the end of the world and to the end of the world and to"
SHAPE = {
    "text": str,
    "token_ids": list,
    "finish_reason": str,
    "sample_seed": int,
    "usage": {"prompt_tokens": int, "completion_tokens": int, "total_tokens": int},
    "timing": {"prefill_seconds": float, "decode_seconds": float, "tokens_per_second": float},
    "speculation": {
        "mean_acceptance_length": float,
        "draft_acceptance_rate": float,
        "num_drafts": int,
        "num_draft_tokens": int,
        "num_accepted_tokens": int,
    },
}


def check_shape(value: dict[str, Any], shape: dict[str, Any]) -> None:
    assert list(value) == list(shape)
    for key, kind in shape.items():
        if isinstance(kind, dict):
            check_shape(value[key], kind)
        else:
            assert value[key] is None or type(value[key]) is kind, key


def test_json_has_exactly_these_fields(generate_json: Invoke, tiny_llama_path: Path) -> None:
    answer = generate_json("-m", tiny_llama_path, "--no-chat", "--max-tokens", 40, "--proposer", "ngram", LOOP)
    check_shape(answer, SHAPE)
    assert answer["usage"]["completion_tokens"] == len(answer["token_ids"])
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + len(answer["token_ids"])
    assert answer["speculation"]["num_draft_tokens"] >= answer["speculation"]["num_accepted_tokens"] > 0


def test_json_has_null_where_there_is_no_value(generate_json: Invoke, tiny_llama_path: Path) -> None:
    answer = generate_json("-m", tiny_llama_path, "--max-tokens", 1, "hello")
    check_shape(answer, SHAPE)
    assert answer["timing"]["tokens_per_second"] is None
    assert answer["speculation"]["mean_acceptance_length"] is None
    assert answer["speculation"]["draft_acceptance_rate"] is None


def test_text_is_that_of_the_json(invoke: Invoke, generate_json: Invoke, tiny_llama_path: Path) -> None:
    arguments = ("-m", tiny_llama_path, "--max-tokens", 30, "hello world")
    result = invoke("generate", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == generate_json(*arguments)["text"] + "\n"


@pytest.mark.parametrize("k", [1, 4, 15])
@pytest.mark.parametrize("prompt", ["hello", LOOP, "aaaaaaaaaaaa", "éé 你好 🙂🙂"])
def test_drafts_do_not_change_the_answer(generate_json: Invoke, tiny_llama_path: Path, prompt: str, k: int) -> None:
    arguments = ("-m", tiny_llama_path, "--max-tokens", 120, prompt)
    plain, drafted = generate_json(*arguments), generate_json(*arguments, "--proposer", "ngram", "-k", k)
    assert [drafted[key] for key in ("text", "token_ids", "finish_reason", "usage")] == [
        plain[key] for key in ("text", "token_ids", "finish_reason", "usage")
    ]
    assert plain["speculation"]["num_drafts"] == 0
    assert drafted["speculation"]["num_drafts"] > 0


@pytest.mark.usefixtures("smollm2_path")
def test_default_model_answers_the_same_with_drafts(generate_json: Invoke) -> None:
    prompt = "Repeat this: the quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog."
    plain = generate_json("--max-tokens", 40, prompt)
    drafted = generate_json("--max-tokens", 40, prompt, "--proposer", "ngram", "--num-speculative-tokens", 6)
    assert "quick brown fox" in plain["text"]
    assert drafted["token_ids"] == plain["token_ids"]
    assert drafted["speculation"]["num_accepted_tokens"] > 0


def test_threads_do_not_change_the_answer(generate_json: Invoke, tiny_llama_path: Path) -> None:
    arguments = ("-m", tiny_llama_path, "--max-tokens", 30, "hello")
    assert (
        generate_json(*arguments, "--threads", 1)["token_ids"] == generate_json(*arguments, "--threads", 3)["token_ids"]
    )


def test_standard_input_without_its_last_newline_is_the_prompt(
    invoke: Invoke, generate_json: Invoke, tiny_llama_path: Path
) -> None:
    arguments = ("--json", "-m", tiny_llama_path, "--max-tokens", 5)
    for text in ("hello\nworld", "hello\nworld\n"):
        piped = json.loads(invoke("generate", *arguments, "-", input=text.encode()).stdout)
        assert piped["token_ids"] == generate_json(*arguments, "hello\nworld")["token_ids"]


def test_chat_is_the_default_where_there_is_a_template(
    generate_json: Invoke, tiny_llama_path: Path, plain_llama_path: Path
) -> None:
    def prompt_tokens(path: Path, *arguments: str) -> int:
        number: int = generate_json("-m", path, "--max-tokens", 1, "hello", *arguments)["usage"]["prompt_tokens"]
        return number

    assert prompt_tokens(tiny_llama_path) == prompt_tokens(tiny_llama_path, "--chat")
    assert prompt_tokens(tiny_llama_path) > prompt_tokens(tiny_llama_path, "--no-chat")
    assert prompt_tokens(plain_llama_path) == prompt_tokens(plain_llama_path, "--no-chat")


def test_a_chat_template_of_ones_own(
    invoke: Invoke, generate_json: Invoke, tiny_llama_path: Path, plain_llama_path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text("{{ messages[0].content }}", encoding="utf-8")
    plain = generate_json("-m", tiny_llama_path, "--max-tokens", 4, "--no-chat", "hello")
    for path in (tiny_llama_path, plain_llama_path):
        assert generate_json("-m", path, "--max-tokens", 4, "--chat-template", file, "hello")["text"] == plain["text"]
    default = generate_json("-m", tiny_llama_path, "--max-tokens", 4, "hello")
    named = generate_json("-m", tiny_llama_path, "--max-tokens", 4, "--chat-template", "default", "hello")
    assert named["text"] == default["text"]
    for arguments, words in ((("absent",), "names no file"), ((file, "--no-chat"), "leave one out")):
        result = invoke("generate", "-m", tiny_llama_path, "hello", "--chat-template", *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert words in result.stderr


def test_length_ends_at_the_capacity(generate_json: Invoke, tiny_llama_path: Path) -> None:
    arguments = ("-m", tiny_llama_path, "--no-chat", "--max-model-len", 20, "--max-tokens", 10**30, LOOP[:9])
    for proposer in ("off", "ngram"):
        answer = generate_json(*arguments, "--proposer", proposer)
        assert answer["finish_reason"] == "length"
        assert answer["usage"]["total_tokens"] == 20


def test_drafts_are_coloured_on_a_terminal_only(terminal: Invoke, spawn: Invoke, tiny_llama_path: Path) -> None:
    arguments = ["generate", "-m", str(tiny_llama_path), "--proposer", "ngram", "--max-tokens", "40", LOOP]
    shown = terminal(*arguments, "--show-drafts")
    assert shown.finish() == 0
    assert GREEN in shown.shown
    assert "tokens per forward" in shown.shown  # the summary, on standard error
    unmarked = terminal(*arguments)
    assert unmarked.finish() == 0
    assert GREEN not in unmarked.shown
    piped = spawn(*arguments, "--show-drafts")
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert b"\x1b" not in piped.stdout


def test_output_that_the_terminal_cannot_encode(
    spawn: Invoke, monkeypatch: pytest.MonkeyPatch, tiny_llama_path: Path
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result = spawn("generate", "-m", str(tiny_llama_path), "--max-tokens", "60", "éé 你好")
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.isascii()


def test_numbers_that_are_not_finite_end_the_answer(invoke: Invoke, tiny_llama_path: Path, tmp_path: Path) -> None:
    broken = shutil.copy(tiny_llama_path, tmp_path / "nan.gguf")
    with GGUFFile.open(broken) as file:
        info = file.tensors["output_norm.weight"]
    with broken.open("r+b") as target, mmap.mmap(target.fileno(), 0) as mapping:
        mapping[info.offset : info.offset + info.num_bytes] = np.full(info.shape, np.nan, np.float32).tobytes()
    result = invoke("generate", "-m", broken, "hello")
    assert (result.exit_code, result.stdout) == (1, "\n")
    assert result.stderr.startswith("paceline: the logits that decide position ")
    assert "are not finite; what was written before stands. Check the model file" in result.stderr
    assert result.stderr.count("\n") == 1
    answer = json.loads(invoke("generate", "--json", "-m", broken, "hello").stdout)
    check_shape(answer, SHAPE)
    assert (answer["finish_reason"], answer["token_ids"]) == ("error", [])
