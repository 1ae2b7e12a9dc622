"""Grammars over every kind of vocabulary: byte-level, SentencePiece with byte fallback, and Unigram."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tokenizer_files import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    byte_level_settings,
    sentencepiece_settings,
    write_vocabulary,
)
from tokenizer_folders import unigram, write_folder

from paceline.acceptance.grammar import Grammar, GrammarCompiler
from paceline.acceptance.processors.bits import unpacked
from paceline.models import GGUFFile, Tokenizer
from paceline.response_format import ResponseFormat

BYTES = [(f"<0x{byte:02X}>", -50.0, BYTE) for byte in range(256)]
CONTROLS = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
PIECES = [
    (name, -float(i), NORMAL) for i, name in enumerate(["▁", "▁true", "tr", "ue", "fal", "se", "é", "n", "▁{", "}"])
]


def of_gguf(path: Path, settings: dict[str, object]) -> Tokenizer:
    write_vocabulary(path, settings)
    with GGUFFile.open(path) as file:
        return Tokenizer.from_gguf(file)


@pytest.fixture(params=["byte-level", "sentencepiece", "unigram"])
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> Tokenizer:
    if request.param == "byte-level":
        return of_gguf(tmp_path / "a.gguf", byte_level_settings("gpt-2", ["t r", "u e", "tr ue", '" :', "Ġ {"]))
    if request.param == "sentencepiece":
        return of_gguf(tmp_path / "b.gguf", sentencepiece_settings([*CONTROLS, *BYTES, *PIECES]))
    return Tokenizer.from_folder(write_folder(tmp_path / "c", unigram()))


def walk(tokenizer: Tokenizer, grammar: Grammar, seed: int) -> bytes | None:
    """A text at random, token by token; None for one that found no end."""
    mask, random, text = grammar.mask(tokenizer.stop_ids), Random(seed), b""
    for _ in range(200):
        allowed = np.flatnonzero(unpacked(mask.allowed(()), tokenizer.vocab_size)).tolist()
        assert not any(tokenizer.is_special(token) and token not in tokenizer.stop_ids for token in allowed)
        token = random.choice(allowed)
        text += tokenizer.text_bytes(token)
        if token in tokenizer.stop_ids or mask.num_until_complete([token]) == 1:
            return text
        mask.extend([token])
    return None


def test_texts_are_what_the_grammar_says(tokenizer: Tokenizer) -> None:
    compiler = GrammarCompiler(tokenizer.vocab_size, tokenizer.text_bytes)
    grammar = compiler.compile(ResponseFormat("regex", "(true|né|n){1,3}"))
    texts = {walk(tokenizer, grammar, seed) for seed in range(15)}
    assert len(texts) > 5
    for text in texts:
        assert text is not None
        rest = text.decode()
        for word in ("true", "né", "n"):
            rest = rest.replace(word, "")
        assert rest == ""


def test_every_token_of_a_legal_text_is_legal(tokenizer: Tokenizer) -> None:
    """As the tokenizer writes it, be it with bytes or with the space that SentencePiece knows."""
    text = ' {"é": true, "n": [true, {"se": false}, 1.5e3]}'
    ids = tokenizer.encode_continuation(text)
    assert b"".join(map(tokenizer.text_bytes, ids)).lstrip() == text.lstrip().encode()
    compiler = GrammarCompiler(tokenizer.vocab_size, tokenizer.text_bytes)
    grammar = 'start: / +/ object\nobject: %json {"type": "object"}'
    mask = compiler.compile(ResponseFormat("grammar", grammar)).mask(tokenizer.stop_ids)
    for index, token in enumerate(ids):
        assert mask.allows(token, ids[:index])
        assert not any(mask.allows(stop, ids[:index]) for stop in tokenizer.stop_ids)
    assert mask.num_until_complete(ids) == len(ids)
    assert json.loads(text)


def test_names_of_special_tokens_are_written_with_ordinary_ones(tokenizer: Tokenizer) -> None:
    name = next(iter(tokenizer.special_tokens))
    compiler = GrammarCompiler(tokenizer.vocab_size, tokenizer.text_bytes)
    mask = compiler.compile(ResponseFormat("regex", "(?s:.)*")).mask([])
    assert not any(mask.allows(token, []) for token in tokenizer.special_tokens.values())
    ids = tokenizer.encode_continuation(name)
    assert all(mask.allows(token, ids[:index]) or not tokenizer.text_bytes(token) for index, token in enumerate(ids))
