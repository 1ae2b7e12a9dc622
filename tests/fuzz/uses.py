"""What is done with a model, a tokenizer or a template that could be opened."""

from collections.abc import Sequence
from typing import Any

from tokenizer_files import BYTE, CONTROL, NORMAL, UNKNOWN, sentencepiece_settings

from paceline.models import ChatTemplate, Model, Tokenizer, encode_chat
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime

_TEXT = "Hello <|im_end|> wörld 123\n\n x<tool> y"
_MESSAGES = [{"role": "user", "content": _TEXT}]


def use_tokenizer(tokenizer: Tokenizer) -> None:
    tokenizer.decode(tokenizer.encode(_TEXT, allow_special=True))
    tokenizer.decode(range(min(tokenizer.vocab_size, 400)), skip_special=False)


def use_template(template: ChatTemplate | None, tokenizers: Sequence[Tokenizer]) -> None:
    if template is None:
        return
    template.render(_MESSAGES)
    for tokenizer in tokenizers:
        encode_chat(tokenizer, template, _MESSAGES)


def run_model(model: Model) -> None:
    """Load the model and run three tokens; whatever the numbers are, the native code has to stand them."""
    options = NativeOptions(max_length=min(16, model.config.context_length), num_threads=1, max_rows=4)
    runtime = NativeRuntime.load(model, options)
    last = runtime.info.vocab_size - 1
    tokens = (0, last // 2, last)[: runtime.info.max_length]
    runtime.forward([Segment(0, 0, tuple(range(runtime.info.num_pages)), tokens, logits_rows=(len(tokens) - 1,))])


def sentencepiece_vocabulary(model: str) -> dict[str, Any]:
    """Settings of a small vocabulary with a token for each byte."""
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    pieces += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    pieces += [(piece, -1.0 - rank, NORMAL) for rank, piece in enumerate(["▁", "l", "o", "lo", "▁H", "H", "e", "el"])]
    return sentencepiece_settings(pieces, model=model)
