"""Incremental detokenisation: joined pieces equal the full decoding, and no piece holds part of a character."""

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_files import BYTE, CONTROL, NORMAL, UNKNOWN, sentencepiece_settings, write_vocabulary

from paceline.models import Detokenizer, GGUFFile, Tokenizer


@pytest.fixture(scope="module")
def tokenizer(tiny_llama_path: Path) -> Tokenizer:
    with GGUFFile.open(tiny_llama_path) as file:
        return Tokenizer.from_gguf(file)


@settings(deadline=None, max_examples=300)
@given(runs=st.lists(st.lists(st.integers(0, 319), max_size=6), max_size=12), skip_special=st.booleans())
def test_any_tokens_in_any_runs_give_the_full_decoding(
    tokenizer: Tokenizer, runs: list[list[int]], skip_special: bool
) -> None:
    detokenizer = Detokenizer(tokenizer, skip_special=skip_special)
    pieces = [detokenizer.push(run) for run in runs] + [detokenizer.flush()]
    assert "".join(pieces) == tokenizer.decode(chain.from_iterable(runs), skip_special=skip_special)


@settings(deadline=None, max_examples=200)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_valid_text_is_never_split_inside_a_character(tokenizer: Tokenizer, text: str) -> None:
    detokenizer = Detokenizer(tokenizer)
    shown = ""
    for token_id in tokenizer.encode(text):
        shown += detokenizer.push([token_id])
        assert text.startswith(shown)
    assert shown == text
    assert detokenizer.flush() == ""


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """With a space before every text, and bytes for what has no token."""
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    pieces += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    pieces += [
        (token, -float(i), NORMAL)
        for i, token in enumerate(["\u2581world", "\u2581", "Hello", "world", "\u2581\u2581"])
    ]
    path = tmp_path_factory.mktemp("pieces") / "pieces.gguf"
    write_vocabulary(path, sentencepiece_settings(pieces))
    with GGUFFile.open(path) as file:
        return Tokenizer.from_gguf(file)


@settings(deadline=None, max_examples=300)
@given(
    runs=st.lists(st.lists(st.integers(0, 263), max_size=5), max_size=8),
    skip_special=st.booleans(),
    is_continuation=st.booleans(),
)
def test_pieces_of_sentencepiece_tokens_give_the_full_decoding(
    sentencepiece: Tokenizer, runs: list[list[int]], skip_special: bool, is_continuation: bool
) -> None:
    detokenizer = Detokenizer(sentencepiece, skip_special=skip_special, is_continuation=is_continuation)
    ids = list(chain.from_iterable(runs))
    expected = sentencepiece.decode(ids, skip_special=skip_special, is_continuation=is_continuation)
    for _ in range(2):  # a flushed one is as good as new
        assert "".join([detokenizer.push(run) for run in runs] + [detokenizer.flush()]) == expected


def test_what_continues_a_prompt_keeps_its_space(sentencepiece: Tokenizer) -> None:
    world = 259
    assert Detokenizer(sentencepiece).push([world]) == " world"
    assert Detokenizer(sentencepiece, is_continuation=False).push([world, world]) == "world world"


def test_an_unfinished_character_is_held_back_and_flushed(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("🙂")
    detokenizer = Detokenizer(tokenizer)
    assert [detokenizer.push([i]) for i in ids] == ["", "", "", "🙂"]
    assert detokenizer.push(ids[:3]) == ""
    assert detokenizer.flush() == "\ufffd"
    assert detokenizer.push(ids) == "🙂"


def test_special_tokens_are_not_shown_by_default(tokenizer: Tokenizer) -> None:
    ids = [*tokenizer.encode("a"), 2, *tokenizer.encode("b")]
    assert Detokenizer(tokenizer).push(ids) == "ab"
    assert Detokenizer(tokenizer, skip_special=False).push(ids) == "a<|im_end|>b"
