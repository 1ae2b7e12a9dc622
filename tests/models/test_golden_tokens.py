"""Token ids against those that reference tokenizers gave: the default model, and a small vocabulary of each kind."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizer_files import byte_level_settings, sentencepiece_settings, write_vocabulary

from paceline.models import Detokenizer, GGUFFile, Tokenizer

GOLDEN = Path(__file__).parents[1] / "golden"
COMPOSING = ("mpt", "command-r", "qwen2", "qwen35")  # bring text into the form NFC first, which llama.cpp does not
# fmt: off
FAMILIES = (
    "gpt-2", "mpt", "smollm", "command-r", "llama-bpe", "dbrx", "qwen2", "deepseek-r1-qwen", "qwen35", "tekken",
    "gpt-4o", "deepseek-v3", "deepseek-coder", "deepseek-llm", "falcon", "default", "poro-chat", "viking", "bailingmoe",
    "seed-coder",
)
# fmt: on

ALIKE = ("dbrx", "bailingmoe")  # cut like llama-bpe and deepseek-r1-qwen, as far as these strings go


@cache
def family_tokens() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / "family_tokens.json").read_text(encoding="ascii"))
    return content


def load(path: Path, settings: dict[str, Any]) -> Tokenizer:
    write_vocabulary(path, {**settings, "add_bos_token": False, "add_eos_token": False})
    with GGUFFile.open(path) as file:
        return Tokenizer.from_gguf(file)


def byte_level_ids(family: str) -> dict[str, list[int]]:
    golden = family_tokens()
    differing = golden["byte_level"]["disagreements"].get(family, {})
    expected = {golden["strings"][int(index)]: ids for index, ids in differing.items()}
    for text, found in zip(golden["strings"], golden["byte_level"]["ids"], strict=True):
        for ids, families in found.items():
            if family in families:
                expected[text] = [int(token_id) for token_id in ids.split()]
    return expected


def sentencepiece_case(path: Path, name: str) -> tuple[Tokenizer, dict[str, list[int]]]:
    golden = family_tokens()
    settings = sentencepiece_settings(golden[name]["pieces"], model="t5" if name == "unigram" else "llama")
    tokenizer = load(path, settings | {"add_space_prefix": name != "gemma"})
    ids = [[int(token_id) for token_id in found.split()] for found in golden[name]["ids"]]
    return tokenizer, dict(zip(golden["strings"], ids, strict=True))


def differing(tokenizer: Tokenizer, expected: dict[str, list[int]]) -> list[str]:
    return [text for text, ids in expected.items() if tokenizer.encode(text) != ids]


@pytest.mark.parametrize("family", FAMILIES)
def test_byte_level_families(family: str, tmp_path: Path) -> None:
    tokenizer = load(tmp_path / "family.gguf", byte_level_settings(family, family_tokens()["byte_level"]["merges"]))
    expected = byte_level_ids(family)
    assert len(expected) == len(family_tokens()["strings"]) >= 300
    assert differing(tokenizer, expected) == []
    lost = [text for text, ids in expected.items() if tokenizer.decode(ids) != text]
    assert (lost == []) == (family not in COMPOSING)


def test_families_differ_on_the_strings() -> None:
    """Otherwise the test above could not tell one from another."""
    distinct = {json.dumps(sorted(byte_level_ids(family).items())) for family in FAMILIES}
    assert len(distinct) == len(FAMILIES) - len(ALIKE)


@pytest.mark.parametrize("name", ["bpe", "gemma", "unigram"])
def test_sentencepiece_vocabularies(name: str, tmp_path: Path) -> None:
    tokenizer, expected = sentencepiece_case(tmp_path / "pieces.gguf", name)
    assert len(expected) >= 300
    assert differing(tokenizer, expected) == []
    for text, ids in expected.items():
        if "\u2581" not in text:  # which is a space in such a vocabulary
            assert tokenizer.decode(ids) == text
        pieces = [*map(Detokenizer(tokenizer, is_continuation=False).push, [[i] for i in ids])]
        assert text.startswith("".join(pieces)) or "\u2581" in text


def test_the_default_model(smollm2_path: Path) -> None:
    samples = json.loads((GOLDEN / "tokens.json").read_text(encoding="utf-8"))["strings"]
    with GGUFFile.open(smollm2_path) as file:
        tokenizer = Tokenizer.from_gguf(file)
    assert len(samples) >= 200
    wrong = [sample["text"] for sample in samples if tokenizer.encode(sample["text"]) != sample["ids"]]
    assert wrong == []
    known = {tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)}  # a few bytes have no token
    for sample in samples:
        if all(bytes([byte]) in known for byte in sample["text"].encode()):
            assert tokenizer.decode(sample["ids"]) == sample["text"]
