"""What sets the kinds of vocabularies apart: SentencePiece BPE, unigram, and the pre-tokenizers of byte-level BPE."""

import warnings
from pathlib import Path
from typing import Any

import pytest
from gguf_files import tiny_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_files import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    byte_level_settings,
    sentencepiece_settings,
    write_vocabulary,
)

from paceline.errors import PacelineWarning
from paceline.models import GGUFFile, Tokenizer

_, MERGES = tiny_vocabulary(320)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
SPACE = "\u2581"
# A vocabulary of the llama kind: "▁hello", "▁world" and what they are made of, runs of spaces, and every byte.
_MERGED = ["he", "ll", "hell", "hello", f"{SPACE}hello", "wo", "ld", "wor", "world", f"{SPACE}world", f"{SPACE}w"]
PIECES = [
    ("<unk>", 0.0, UNKNOWN),
    ("<s>", 0.0, CONTROL),
    ("</s>", 0.0, CONTROL),
    *((f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)),
    ("\n\n", 0.0, USER_DEFINED),
    *((token, -float(index), NORMAL) for index, token in enumerate([*_MERGED, SPACE, *"helowrd"])),
]
UNDEFINED = [piece for piece in PIECES if piece[2] != USER_DEFINED]


def load_settings(path: Path, settings: dict[str, Any]) -> Tokenizer:
    write_vocabulary(path, settings)
    with GGUFFile.open(path) as file:
        return Tokenizer.from_gguf(file)


@pytest.fixture(scope="module")
def prefixed(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Puts a space before every text."""
    return load_settings(tmp_path_factory.mktemp("spm") / "prefixed.gguf", sentencepiece_settings(UNDEFINED))


@pytest.fixture(scope="module")
def unprefixed(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    settings = sentencepiece_settings(PIECES) | {"add_space_prefix": False, "add_bos_token": False}
    return load_settings(tmp_path_factory.mktemp("spm") / "unprefixed.gguf", settings)


@settings(deadline=None, max_examples=200)
@given(text=TEXT | st.text("hello wrd<s>/\n", max_size=80))
def test_sentencepiece_text_comes_back(prefixed: Tokenizer, unprefixed: Tokenizer, text: str) -> None:
    text = text.replace(SPACE, "")
    for tokenizer in (prefixed, unprefixed):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert not any(tokenizer.is_special(i) for i in ids[tokenizer.add_bos :])
        assert tokenizer.min_num_tokens(text) <= len(ids)


def test_sentencepiece_merges_by_score(unprefixed: Tokenizer, prefixed: Tokenizer) -> None:
    def names(tokenizer: Tokenizer, text: str) -> list[bytes]:
        return [tokenizer.token_bytes(i) for i in tokenizer.encode(text)]

    assert names(unprefixed, "hello world") == [b"hello", b" world"]
    assert names(prefixed, "hello world") == [b"<s>", b" hello", b" world"]
    assert names(unprefixed, "\n\n\n\u00e9") == [b"\n\n", b"\n", b"\xc3", b"\xa9"]
    assert names(prefixed, "") == [b"<s>"]
    assert prefixed.encode("<s>", allow_special=True) == [1]
    assert len(prefixed.encode("<s>")) > 3  # typed by a user: text


def test_scores_need_not_be_sorted_and_equal_ones_merge_from_the_left(tmp_path: Path) -> None:
    pieces = [("<unk>", 0.0, UNKNOWN), *((t, -9.0, NORMAL) for t in "abc"), ("ab", -3.0, NORMAL), ("bc", -2.0, NORMAL)]
    settings = sentencepiece_settings(pieces) | {"add_space_prefix": False, "bos_token_id": None, "eos_token_id": None}
    tokenizer = load_settings(tmp_path / "later.gguf", settings)
    assert [tokenizer.token_bytes(i) for i in tokenizer.encode("abc")] == [b"a", b"bc"]
    equal = load_settings(tmp_path / "equal.gguf", settings | {"scores": [0.0, -9.0, -9.0, -9.0, -2.0, -2.0]})
    assert [equal.token_bytes(i) for i in equal.encode("abc")] == [b"ab", b"c"]
    assert tokenizer.encode("a??b") == [1, 0, 2]  # one unknown token for a run of what no token spells
    assert tokenizer.min_num_tokens("a??b") == 0


def test_what_continues_a_text_keeps_its_space(prefixed: Tokenizer, unprefixed: Tokenizer) -> None:
    world = prefixed.encode("world")[1:]
    assert prefixed.decode(world) == "world"
    assert prefixed.decode(world, is_continuation=True) == " world"
    world = unprefixed.encode(" world")
    assert unprefixed.decode(world) == unprefixed.decode(world, is_continuation=True) == " world"


def test_unigram_takes_the_most_probable_tokens(tmp_path: Path) -> None:
    scores = {"a": -2.0, "b": -2.0, "ab": -3.0, "c": -2.0, "bc": -1.0, SPACE: -1.0, f"{SPACE}a": -5.0}
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    pieces += [(token, score, NORMAL) for token, score in scores.items()]
    settings = sentencepiece_settings(pieces, model="t5") | {"bos_token_id": None}
    tokenizer = load_settings(tmp_path / "unigram.gguf", settings)
    assert (tokenizer.add_bos, tokenizer.add_eos) == (False, True)

    def names(text: str) -> list[bytes]:
        return [tokenizer.token_bytes(i) for i in tokenizer.encode(text)]

    assert names("abc") == [b" ", b"a", b"bc", b"</s>"]
    assert names("abab") == [b" ", b"ab", b"ab", b"</s>"]
    assert names("a  b") == [b" ", b"a", b" ", b" ", b"b", b"</s>"]
    assert names("a?!b") == [b" ", b"a", b"<unk>", b"b", b"</s>"]
    spaces = load_settings(tmp_path / "spaces.gguf", settings | {"remove_extra_whitespaces": True})
    assert spaces.encode("  a  b ") == tokenizer.encode("a b")


@pytest.mark.parametrize("pre", ["made-up", None])
def test_an_unknown_pre_tokenizer_is_assumed_with_a_warning(pre: str | None, tmp_path: Path) -> None:
    settings = byte_level_settings(pre, MERGES)
    expected = "the pre-tokenizer 'made-up' is unknown" if pre else "does not say how text is cut into words"
    with pytest.warns(PacelineWarning, match=expected):
        tokenizer = load_settings(tmp_path / "unknown.gguf", settings)
    assert tokenizer.decode(tokenizer.encode("Hello, 123 worlds")) == "Hello, 123 worlds"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_settings(tmp_path / "known.gguf", settings | {"pre": "qwen2"})


def test_llama_3_takes_words_that_are_tokens_and_begins_with_bos(tmp_path: Path) -> None:
    merges = ["a b", "b c", "ab c"]
    settings = byte_level_settings("llama-bpe", merges)
    settings["tokens"] = [*settings["tokens"], "abcd"]  # no merge leads there
    settings["token_type"] = [*settings["token_type"], NORMAL]
    tokenizer = load_settings(tmp_path / "llama3.gguf", settings)
    assert tokenizer.encode("abcd") == [0, len(settings["tokens"]) - 1]
    plain = load_settings(tmp_path / "dbrx.gguf", settings | {"pre": "dbrx"})
    assert [plain.token_bytes(i) for i in plain.encode("abcd")] == [b"abc", b"d"]


def test_qwen2_composes_what_is_decomposed(tmp_path: Path) -> None:
    tokenizer = load_settings(tmp_path / "qwen.gguf", byte_level_settings("qwen2", MERGES))
    assert tokenizer.encode("e\u0301\u1112\u1161\u11ab") == tokenizer.encode("\u00e9\ud55c")
    smollm = load_settings(tmp_path / "smollm.gguf", byte_level_settings("smollm", MERGES))
    assert smollm.decode(smollm.encode("e\u0301")) == "e\u0301"
