"""Text through sound tokenizers of every kind and back."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

import atheris
from harness import FindingError, attempt, fuzz
from tokenizer_files import byte_level_settings, write_vocabulary
from tokenizer_folders import byte_level, sentencepiece, unigram, write_folder
from uses import sentencepiece_vocabulary

from paceline.models import Detokenizer, GGUFFile, Tokenizer

_MERGES = ["h e", "l l", "he ll", "Ġ t", "Ġt he", "Ċ Ċ", "1 2", "Ã ¶"]
_PRES = ["gpt-2", "llama-bpe", "qwen2", "smollm", "tekken", "gpt-4o", "deepseek-llm", "qwen35"]
_MAX_CHARACTERS = 1 << 16


class _Case(NamedTuple):
    name: str
    tokenizer: Tokenizer
    is_lossless: bool


def _cases() -> Iterator[_Case]:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "t.gguf"
        for pre in _PRES:
            write_vocabulary(path, byte_level_settings(pre, _MERGES))
            found: list[Tokenizer] = []
            with GGUFFile.open(path) as file:
                attempt(lambda: found.append(Tokenizer.from_gguf(file)))  # noqa: B023
            for tokenizer in found:
                yield _Case(pre, tokenizer, True)
        for model in ("llama", "t5"):
            write_vocabulary(path, sentencepiece_vocabulary(model))
            with GGUFFile.open(path) as file:
                yield _Case(model, Tokenizer.from_gguf(file), False)
        for index, content in enumerate((byte_level(), sentencepiece(None), sentencepiece("first"), unigram())):
            folder = write_folder(Path(name) / str(index), content)
            yield _Case(f"folder {index}", Tokenizer.from_folder(folder), index == 0)


_CASES = list(_cases())


def test_text(content: bytes) -> None:
    provider = atheris.FuzzedDataProvider(content)
    case = _CASES[provider.ConsumeIntInRange(0, len(_CASES) - 1)]
    allow_special = provider.ConsumeBool()
    if provider.ConsumeBool():
        text = provider.ConsumeUnicode(_MAX_CHARACTERS)
    else:
        text = provider.ConsumeBytes(_MAX_CHARACTERS).decode(errors="replace")
    attempt(lambda: _round_trip(case, text, allow_special))


def _round_trip(case: _Case, text: str, allow_special: bool) -> None:
    tokenizer = case.tokenizer
    ids = tokenizer.encode(text, allow_special=allow_special)
    if not all(0 <= token_id < tokenizer.vocab_size for token_id in ids):
        raise FindingError(f"{case.name}: ids past the vocabulary")
    if tokenizer.min_num_tokens(text) > len(ids) and not allow_special:
        raise FindingError(f"{case.name}: fewer tokens than the least")
    decoded = tokenizer.decode(ids)
    detokenizer = Detokenizer(tokenizer, is_continuation=False)
    streamed = "".join([*(detokenizer.push([token_id]) for token_id in ids), detokenizer.flush()])
    if streamed != decoded:
        raise FindingError(f"{case.name}: decoded at once {decoded!r}, one by one {streamed!r}")
    if case.is_lossless and not allow_special and normalize("NFC", decoded) != normalize("NFC", text):
        raise FindingError(f"{case.name}: {text!r} comes back as {decoded!r}")


if __name__ == "__main__":
    seeds = [f"{chr(index)}\0\1 It's  12345 wörld\r\n\n 你好🙂 <s>hello the".encode() for index in range(16)]
    fuzz(test_text, seeds)
