"""`paceline inspect`: what a file or folder is, what memory it takes, and whether two speak of the same tokens."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest
from gguf_files import tiny_vocabulary, write_tiny_llama
from hf_files import config_of, write_folder, write_tokenizer

from paceline.cli import inspect as command
from paceline.runtime.native import runnable_isas

Invoke = Callable[..., Any]  # see conftest.py


@pytest.fixture(scope="module")
def folder_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "folder"
    write_folder(path)
    write_tokenizer(path)
    return path


def report_of(invoke: Invoke, *arguments: object) -> dict[str, Any]:
    result = invoke("inspect", "--json", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_a_file(invoke: Invoke, tiny_llama_path: Path) -> None:
    report = report_of(invoke, tiny_llama_path)
    tensors = gguf.GGUFReader(tiny_llama_path).tensors
    model = report["model"]
    assert model["num_parameters"] == sum(int(tensor.n_elements) for tensor in tensors)
    assert model["memory"] == {
        "context": 256,
        "concurrency": 1,
        "weights": sum(int(tensor.n_bytes) for tensor in tensors),
        "cache": 256 * 2 * 2 * 2 * 16 * 2,
    }
    assert {share["type"]: share["num_tensors"] for share in model["types"]} == {"Q4_1": 15, "F32": 5}
    assert sum(share["num_bytes"] for share in model["types"]) == model["memory"]["weights"]
    assert (model["path"], model["architecture"]) == (str(tiny_llama_path), "llama")
    assert (model["context_length"], model["num_layers"], model["hidden_size"], model["head_dim"]) == (256, 2, 64, 16)
    assert (model["vocab_size"], model["num_tokens"], model["has_chat_template"]) == (320, 320, True)
    assert model["stop_tokens"] == [{"id": 0, "token": "<|endoftext|>"}, {"id": 2, "token": "<|im_end|>"}]
    assert (report["draft"], report["vocabularies"]) == (None, None)
    assert report["isas"] == list(runnable_isas())
    assert report["memory"]["needed"] == model["memory"]["weights"] + model["memory"]["cache"]


def test_cache_grows_with_context_and_concurrency(invoke: Invoke, tiny_llama_path: Path) -> None:
    memory = report_of(invoke, tiny_llama_path, "--context", 100, "--concurrency", 3)["model"]["memory"]
    assert (memory["context"], memory["concurrency"], memory["cache"]) == (100, 3, 100 * 3 * 256)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--context", 0), "--context is 0; expected 1 to 256"),
        (("--context", 257), "--context is 257; expected 1 to 256"),
        (("--concurrency", 0), "--concurrency is 0; expected 1 to 1000000"),
        (("--quantization", "q8"), "leave out --quantization"),
    ],
)
def test_what_cannot_be(invoke: Invoke, tiny_llama_path: Path, arguments: tuple[object, ...], expected: str) -> None:
    result = invoke("inspect", tiny_llama_path, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("quantization", "types"),
    [
        (None, {"Q8_0": 16, "F32": 5}),
        ("q8", {"Q8_0": 16, "F32": 5}),
        ("q4", {"Q4_1": 14, "Q8_0": 2, "F32": 5}),
        ("none", {"BF16": 16, "F32": 5}),
    ],
)
def test_a_folder(invoke: Invoke, folder_path: Path, quantization: str | None, types: dict[str, int]) -> None:
    options = () if quantization is None else ("--quantization", quantization)
    model = report_of(invoke, folder_path, *options)["model"]
    assert {share["type"]: share["num_tensors"] for share in model["types"]} == types
    assert (model["architecture"], model["has_chat_template"]) == ("llama", True)
    assert model["stop_tokens"] == [{"id": 0, "token": "<|endoftext|>"}, {"id": 2, "token": "<|im_end|>"}]


def test_vocabularies_that_agree(invoke: Invoke, folder_path: Path, tiny_llama_path: Path) -> None:
    report = report_of(invoke, folder_path, "--draft", tiny_llama_path)
    expected = {"same": True, "num_compared": 320, "num_different": 0, "first_difference": None}
    assert report["vocabularies"] == expected
    needed = sum(report[name]["memory"][part] for name in ("model", "draft") for part in ("weights", "cache"))
    assert report["memory"]["needed"] == needed


def test_vocabularies_that_differ(invoke: Invoke, tiny_llama_path: Path, tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "longer.gguf", vocab_size=323)
    compared = report_of(invoke, tiny_llama_path, "--draft", tmp_path / "longer.gguf")["vocabularies"]
    first = compared.pop("first_difference")
    assert compared == {"same": False, "num_compared": 323, "num_different": 3}
    assert (first["token_id"], first["target"]) == (320, None)
    assert isinstance(first["draft"], str)
    text = invoke("inspect", tmp_path / "longer.gguf", "--draft", tiny_llama_path).stdout
    assert "differ in 3 of 323 tokens, first in 320: " in text
    assert "and no token. The second model cannot draft for the first." in text


def test_ids_that_fill_a_vocabulary_up_are_put_aside(invoke: Invoke, tiny_llama_path: Path, tmp_path: Path) -> None:
    tokens, merges = tiny_vocabulary(320)
    changes = {
        "tokenizer.ggml.tokens": [*tokens, "[PAD320]", "[PAD321]"],
        "tokenizer.ggml.merges": merges,
    }
    write_tiny_llama(tmp_path / "m.gguf", vocab_size=322, extra_metadata=changes)
    report = report_of(invoke, tiny_llama_path, "--draft", tmp_path / "m.gguf")
    assert report["vocabularies"] == {
        "same": True,
        "num_compared": 320,
        "num_different": 0,
        "first_difference": None,
    }
    assert (report["draft"]["num_tokens"], report["draft"]["vocab_size"]) == (320, 322)


def test_the_draft_s_own_context_bounds_its_cache(invoke: Invoke, tiny_llama_path: Path, tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "short.gguf", context_length=64)
    report = report_of(invoke, tiny_llama_path, "--draft", tmp_path / "short.gguf")
    assert [report[name]["memory"]["context"] for name in ("model", "draft")] == [256, 64]


@pytest.mark.parametrize(
    ("available", "verdict"), [(10**12, "it fits."), (1000, "it does not fit; "), (None, "does not tell")]
)
def test_whether_it_fits(
    invoke: Invoke, tiny_llama_path: Path, monkeypatch: pytest.MonkeyPatch, available: int | None, verdict: str
) -> None:
    monkeypatch.setattr(command, "available_memory", lambda: available)
    memory = report_of(invoke, tiny_llama_path)["memory"]
    assert (memory["available"], memory["fits"]) == (available, None if available is None else available > 1000)
    assert verdict in invoke("inspect", tiny_llama_path).stdout


def test_text(invoke: Invoke, tiny_llama_path: Path) -> None:
    result = invoke("inspect", tiny_llama_path, "--concurrency", 2)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = {line[:17].strip(): line[17:] for line in result.stdout.splitlines() if line.startswith("  ")}
    assert lines["architecture"] == "llama, 2 layers of width 64, 4 heads of width 16, 2 for keys and values"
    assert lines["context"] == "256 tokens"
    assert lines["vocabulary"] == "320 tokens in 320 rows"
    assert lines["chat template"] == "yes"
    assert lines["stop tokens"] == "0 '<|endoftext|>', 2 '<|im_end|>'"
    assert lines["type Q4_1"].startswith("15 tensors, ")
    assert lines["cache"] == "0.1 MB for 2 sequences of 256 tokens"
    assert f"Kernels that run here, the fastest first: {', '.join(runnable_isas())}." in result.stdout


def test_models_that_cannot_be_opened(invoke: Invoke, tmp_path: Path) -> None:
    write_folder(tmp_path / "moe", config_of() | {"num_local_experts": 8})
    write_tokenizer(tmp_path / "moe")
    result = invoke("inspect", tmp_path / "moe")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("paceline: ")
    assert "mixture of experts" in result.stderr
    assert result.stderr.count("\n") == 1
