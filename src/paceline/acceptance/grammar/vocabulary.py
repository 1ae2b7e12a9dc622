"""A vocabulary as the grammar library wants it: the bytes of every token, and one more token for the end of the text.

What ends an answer differs from request to request, so none of the model's tokens is told to be one. In place of them
stands an id behind the vocabulary, which the library allows exactly where the text may end. Tokens that add nothing to
a text, special tokens first of all, have no bytes: no grammar can write them, nor name them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from paceline.acceptance.processors.bits import Bits, packed

if TYPE_CHECKING:
    from llguidance import TokenizerWrapper

_END = b"\xff<end>"  # 0xff marks what is no text


class GrammarVocabulary:
    """`has_text`: the tokens that a grammar can allow. `native`: the library's own form."""

    def __init__(self, vocab_size: int, token_text: Callable[[int], bytes]) -> None:
        from llguidance import LLTokenizer

        texts = [token_text(token) for token in range(vocab_size)]
        self.vocab_size = vocab_size
        self.has_text: Bits = packed(np.array([bool(text) for text in texts], np.bool_))
        self.native = LLTokenizer(cast("TokenizerWrapper", _Wrapper([*texts, _END])), eos_token=vocab_size)


class _Wrapper:
    """What the library asks a tokenizer for. It tokenizes only what it would force on a model, and it forces nothing
    here: a grammar allows every token whose text is legal, not only those that the tokenizer would have chosen.
    """

    is_tokenizer_wrapper = True
    bos_token_id = None
    special_token_ids: Sequence[int] = ()

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.tokens = tokens
        self.eos_token_id = len(tokens) - 1

    def __call__(self, text: str) -> list[int]:
        raise RuntimeError(f"{text!r:.100} is to be tokenized; no grammar here forces tokens")
