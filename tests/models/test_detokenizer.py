"""Incremental detokenisation: joined pieces equal the full decoding, and no piece holds part of a character."""

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
