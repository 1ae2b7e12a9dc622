"""Folders end to end: through the API and the command line, with their own tokenizer and template."""

from pathlib import Path
from typing import Any

import pytest
from hf_files import config_of, write_folder, write_tokenizer

from paceline import LLM, SamplingParams, UsageError
from paceline.models import HFModel, open_model
from paceline.runtime.native import NativeRuntime

PROMPT = "the and of to in hello world the and of to in hello world the and of"
PARAMS = SamplingParams(max_tokens=40, ignore_eos=True)


@pytest.fixture(scope="module")
def folder_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "folder"
    write_folder(path, config_of("qwen2"), num_shards=2)
    write_tokenizer(path)
    return path


@pytest.mark.parametrize("quantization", [None, "q8", "q4"])
def test_speculation_changes_no_token(folder_path: Path, quantization: Any) -> None:
    plain, drafting = (
        LLM(folder_path, quantization=quantization, speculation=speculation) for speculation in (None, "ngram")
    )
    [expected], [found] = plain.generate(PROMPT, PARAMS), drafting.generate(PROMPT, PARAMS)
    assert found.token_ids == expected.token_ids
    assert found.speculation.num_draft_tokens > 0
    assert plain.has_chat_template


def test_8_bits_are_the_default(folder_path: Path) -> None:
    with open_model(folder_path) as default, open_model(folder_path, quantization="q8") as asked:
        assert default.tensors == asked.tensors
        assert isinstance(default, HFModel)


def test_unknown_quantisations(folder_path: Path, tiny_llama_path: Path) -> None:
    with pytest.raises(UsageError, match="quantization is 'q5'; expected one of q8, q4, none"):
        LLM(folder_path, quantization="q5")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="leave out quantization"):
        LLM(tiny_llama_path, quantization="q8")


def test_weight_bytes_follow_the_quantisation(folder_path: Path) -> None:
    def weight_bytes(quantization: Any) -> int:
        with open_model(folder_path, quantization=quantization) as model:
            return NativeRuntime.load(model).weight_bytes

    assert weight_bytes("q4") < weight_bytes("q8")
