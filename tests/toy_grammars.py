"""Compiled grammars over vocabularies of a few tokens."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from paceline.acceptance.grammar import Grammar, GrammarCompiler, GrammarMask
from paceline.acceptance.processors.bits import unpacked
from paceline.response_format import checked_format


@lru_cache(None)
def compiler(texts: tuple[bytes, ...]) -> GrammarCompiler:
    return GrammarCompiler(len(texts), lambda token: texts[token])


def compiled(texts: Sequence[bytes], given: dict[str, Any]) -> Grammar:
    response_format = checked_format(given)
    assert response_format is not None
    return compiler(tuple(texts)).compile(response_format)


def regex(texts: Sequence[bytes], pattern: str) -> Grammar:
    return compiled(texts, {"type": "regex", "pattern": pattern})


def allowed_ids(mask: GrammarMask, drafted: Sequence[int] = (), *, vocab_size: int) -> list[int]:
    ids: list[int] = np.flatnonzero(unpacked(mask.allowed(drafted), vocab_size)).tolist()
    return ids
