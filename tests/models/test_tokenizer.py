"""The tokenizer: ids of the byte-level BPE, special tokens only where asked for, every byte back on decoding."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gguf_files import tiny_vocabulary, write_tiny_llama
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import ModelFormatError, UnsupportedModelError, UsageError
from paceline.models import GGUFFile, Tokenizer

TOKENS, MERGES = tiny_vocabulary(320)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
END_OF_TEXT, START, END = 0, 1, 2


@pytest.fixture(scope="module")
def tiny(tiny_llama_path: Path) -> Tokenizer:
    with GGUFFile.open(tiny_llama_path) as file:
        return Tokenizer.from_gguf(file)


@pytest.fixture(scope="module")
def smollm2(smollm2_path: Path) -> Iterator[Tokenizer]:
    with GGUFFile.open(smollm2_path) as file:
        yield Tokenizer.from_gguf(file)


def tokenizer_with(path: Path, extra: dict[str, Any]) -> Tokenizer:
    write_tiny_llama(path, extra_metadata=extra)
    with GGUFFile.open(path) as file:
        return Tokenizer.from_gguf(file)


@settings(deadline=None, max_examples=200)
@given(text=TEXT)
def test_decoding_gives_the_text_back(tiny: Tokenizer, text: str) -> None:
    ids = tiny.encode(text)
    assert tiny.decode(ids) == text
    assert b"".join(map(tiny.token_bytes, ids)) == text.encode()


@settings(deadline=None, max_examples=200)
@given(parts=st.lists(TEXT | st.sampled_from(["<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|im_", "end|>"])))
def test_plain_encoding_never_makes_a_special_token(tiny: Tokenizer, parts: list[str]) -> None:
    text = "".join(parts)
    ids = tiny.encode(text)
    assert not any(tiny.is_special(i) for i in ids)
    assert tiny.decode(ids) == text


def test_special_tokens_where_allowed(tiny: Tokenizer) -> None:
    text = "<|im_start|>user\nhello<|im_end|>"
    ids = tiny.encode(text, allow_special=True)
    assert ids == [START, *tiny.encode("user\nhello"), END]
    assert tiny.decode(ids) == "user\nhello"
    assert tiny.decode(ids, skip_special=False) == text
    assert tiny.split_special("a<|im_end|><|im_end|>") == ["a", END, END]
    assert tiny.encode("") == []


def test_known_ids_of_the_default_model(smollm2: Tokenizer) -> None:
    assert smollm2.vocab_size == 49152
    assert smollm2.encode("hello world") == [28120, 905]
    assert smollm2.encode("123") == [33, 34, 35]  # each digit on its own
    assert smollm2.encode("<|im_end|>") == [44, 108, 306, 79, 486, 108, 46]
    assert smollm2.encode("<|im_end|>", allow_special=True) == [2]


def test_properties(tiny: Tokenizer, smollm2: Tokenizer) -> None:
    for tokenizer in (tiny, smollm2):
        assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.add_bos) == (START, END, False)
        assert tokenizer.stop_ids == {END_OF_TEXT, END}
    assert dict(tiny.special_tokens) == {"<|endoftext|>": END_OF_TEXT, "<|im_start|>": START, "<|im_end|>": END}
    assert tiny.is_special(END)
    assert not tiny.is_special(3)


def test_beginning_of_sequence_is_written_once(tiny: Tokenizer, tmp_path: Path) -> None:
    tokenizer = tokenizer_with(tmp_path / "bos.gguf", {"tokenizer.ggml.add_bos_token": True})
    assert tokenizer.add_bos
    assert tokenizer.encode("hi") == [START, *tiny.encode("hi")]
    assert tokenizer.encode("<|im_start|>hi", allow_special=True) == [START, *tiny.encode("hi")]
    assert tokenizer.encode("<|im_start|>hi") == [START, *tiny.encode("<|im_start|>hi")]
    assert tokenizer.encode("") == [START]


def test_end_of_turn_tokens_stop(tmp_path: Path) -> None:
    tokenizer = tokenizer_with(tmp_path / "eot.gguf", {"tokenizer.ggml.eot_token_id": 7})
    assert tokenizer.stop_ids == {END_OF_TEXT, END, 7}
    spelt_out = tokenizer_with(
        tmp_path / "text.gguf",
        {"tokenizer.ggml.tokens": [*TOKENS[:-1], "<|eot_id|>"], "tokenizer.ggml.merges": MERGES[:-1]},
    )
    assert spelt_out.stop_ids == {END_OF_TEXT, END}  # an ordinary token of that name is text


def test_lone_surrogates_are_refused(tiny: Tokenizer) -> None:
    with pytest.raises(UsageError, match=r"lone surrogate \(U\+DC80 at character 2\)"):
        tiny.encode("ab\udc80")


def test_ids_outside_the_vocabulary_are_refused(tiny: Tokenizer) -> None:
    for token_id in (-1, 320, 1 << 40):
        with pytest.raises(UsageError, match=f"token id {token_id} is outside of the vocabulary, 0 to 319"):
            tiny.decode([token_id])


def test_invalid_bytes_become_replacement_characters(tiny: Tokenizer) -> None:
    (first, *rest) = tiny.encode("é")
    assert tiny.decode([first]) == "\ufffd"
    assert tiny.decode([first, first, *rest]) == "\ufffdé"


def toy_tokenizer(types: dict[str, int]) -> Tokenizer:
    """Tokens given one by one with their types, where a file's vocabulary would not show the case."""
    tokens = list(types)
    return Tokenizer(tokens, list(types.values()), lambda text: [tokens.index(character) for character in text])


def test_user_defined_tokens_are_found_in_plain_text_and_decoded_as_written() -> None:
    tokenizer = toy_tokenizer({"a": 1, "<tool>": 4, "<end>": 3, "<": 1, "e": 1, "n": 1, "d": 1, ">": 1})
    assert tokenizer.encode("a<tool>a") == [0, 1, 0]
    assert tokenizer.encode("<end>") == [3, 4, 5, 6, 7]
    assert tokenizer.decode([1, 2, 0]) == "<tool>a"


def test_the_longest_special_token_wins() -> None:
    tokenizer = toy_tokenizer({"<a": 3, "<a>": 3, "x": 1})
    assert tokenizer.encode("<a>x<ax", allow_special=True) == [1, 2, 0, 2]


@pytest.mark.parametrize(
    ("changes", "error", "expected"),
    [
        ({"tokenizer.ggml.model": "llama"}, UnsupportedModelError, "tokenizer 'llama' is not supported"),
        ({"tokenizer.ggml.model": None}, ModelFormatError, "'tokenizer.ggml.model' is missing"),
        ({"tokenizer.ggml.pre": "llama-bpe"}, UnsupportedModelError, "pre-tokenizer 'llama-bpe' is not supported"),
        ({"tokenizer.ggml.pre": None}, UnsupportedModelError, "pre-tokenizer 'default' is not supported"),
        ({"tokenizer.ggml.token_type": [1, 1]}, ModelFormatError, "2 token types for 320 tokens"),
        ({"tokenizer.ggml.token_type": "none"}, ModelFormatError, "should be an array of whole numbers"),
        ({"tokenizer.ggml.eos_token_id": 320}, ModelFormatError, "eos_token_id is 320, outside of the 320 tokens"),
        ({"tokenizer.ggml.tokens": [*TOKENS[:-1], "a"]}, ModelFormatError, "token 'a' is in the vocabulary twice"),
        ({"tokenizer.ggml.merges": [*MERGES, "a"]}, ModelFormatError, "merges do not fit the vocabulary"),
        ({"tokenizer.ggml.merges": [*MERGES, "a b c"]}, ModelFormatError, "merges do not fit the vocabulary"),
        ({"tokenizer.ggml.merges": [*MERGES, "Q Q"]}, ModelFormatError, "merges do not fit the vocabulary"),
        (
            {"tokenizer.ggml.bos_token_id": None, "tokenizer.ggml.add_bos_token": True},
            ModelFormatError,
            "there is no bos_token_id",
        ),
    ],
)
def test_bad_tokenizers_are_named(
    changes: dict[str, Any], error: type[Exception], expected: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=expected):
        tokenizer_with(tmp_path / "bad.gguf", changes)
