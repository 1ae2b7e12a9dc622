"""Folders end to end: through the API and the command line, with their own tokenizer and template."""

import json
from pathlib import Path
from typing import Any

import pytest
from hf_files import config_of, write_folder, write_tokenizer

from paceline import LLM, SamplingParams, UsageError
from paceline.errors import ModelFormatError
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


def test_a_tokenizer_of_another_model(tmp_path: Path) -> None:
    write_folder(tmp_path)
    write_tokenizer(tmp_path, 330)
    expected = pytest.raises(ModelFormatError, match="token 320 is past the 320 rows of the embedding")
    with HFModel(tmp_path, "q8") as model, expected:
        model.tokenizer()


def test_special_tokens_without_a_row(tmp_path: Path) -> None:
    write_folder(tmp_path)
    write_tokenizer(tmp_path, 320, more_special=("<image_soft_token>",))
    llm = LLM(tmp_path)
    assert (llm.tokenizer.vocab_size, llm.runtime.info.vocab_size) == (321, 320)
    [output] = llm.generate(PROMPT, PARAMS)
    assert len(output.token_ids) == 40


def test_the_special_tokens_that_templates_know(tmp_path: Path) -> None:
    write_folder(tmp_path)
    write_tokenizer(tmp_path)
    (tmp_path / "special_tokens_map.json").write_text(
        '{"eos_token": "wrong", "pad_token": {"content": "<|endoftext|>"}}'
    )
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config["chat_template"] = "{{ eos_token }} {{ pad_token }}{% if bos_token is defined %} bos{% endif %}"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with HFModel(tmp_path, "q8") as model:
        template = model.chat_template()
    assert template is not None
    assert template.render([{"role": "user", "content": "hi"}]) == "<|im_end|> <|endoftext|>"


def test_weight_bytes_follow_the_quantisation(folder_path: Path) -> None:
    def weight_bytes(quantization: Any) -> int:
        with open_model(folder_path, quantization=quantization) as model:
            return NativeRuntime.load(model).weight_bytes

    assert weight_bytes("q4") < weight_bytes("q8")
