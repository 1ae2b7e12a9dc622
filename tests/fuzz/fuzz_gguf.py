"""Damaged GGUF files: opened, described, their tokenizer and chat template used, and some run through the runtime.

An input is one file, or the two parts of a split model one behind the other.
"""

import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from gguf_files import VARIANTS, write_tiny_model
from harness import attempt, fuzz
from mutations import damaged_gguf
from tokenizer_files import byte_level_settings, write_vocabulary
from uses import run_model, sentencepiece_vocabulary, use_template, use_tokenizer

from paceline.models import ChatTemplate, GGUFModel, Tokenizer, read_config
from paceline.models.gguf import open_gguf

_SPLIT = b"SPLIT"
_SHARE_RUN = 3  # one in so many inputs is loaded into the runtime, if it can be
_FOLDER = Path(tempfile.mkdtemp())


def test_file(content: bytes) -> None:
    path = _write(content)
    if not attempt(lambda: open_gguf(path).close()):
        return
    with open_gguf(path) as file:
        attempt(lambda: read_config(file))
        tokenizers: list[Tokenizer] = []
        attempt(lambda: tokenizers.append(Tokenizer.from_gguf(file)))
        for tokenizer in tokenizers:
            attempt(partial(use_tokenizer, tokenizer))
        attempt(lambda: use_template(ChatTemplate.from_gguf(file), tokenizers))
    if zlib.crc32(content) % _SHARE_RUN == 0:
        attempt(lambda: _run(path))


def _write(content: bytes) -> Path:
    if not content.startswith(_SPLIT) or len(content) < len(_SPLIT) + 4:
        path = _FOLDER / "m.gguf"
        path.write_bytes(content)
        return path
    (size,) = struct.unpack_from("<I", content, len(_SPLIT))
    first, second = (_FOLDER / f"m-0000{number}-of-00002.gguf" for number in (1, 2))
    start = len(_SPLIT) + 4
    first.write_bytes(content[start : start + size])
    second.write_bytes(content[start + size :])
    return first


def _run(path: Path) -> None:
    with GGUFModel(path) as model:
        run_model(model)


def _seeds() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = {"num_layers": 1, "vocab_size": 262}
        cases: dict[str, Callable[[Path], object]] = {
            "plain": lambda path: write_tiny_model(path, **small),
            "k-quants": lambda path: write_tiny_model(path, tensor_type="Q4_K", head_type="Q6_K", **small),
            "float": lambda path: write_tiny_model(
                path, tensor_type="BF16", vector_type="F16", is_head_tied=False, **small
            ),
            "divisors": lambda path: write_tiny_model(path, rope_divisors=[1.0] * 8, **small),
            "byte-level": lambda path: write_vocabulary(path, byte_level_settings("qwen2", ["a b", "ab c"])),
            "sentencepiece": lambda path: write_vocabulary(path, sentencepiece_vocabulary("llama")),
            "unigram": lambda path: write_vocabulary(path, sentencepiece_vocabulary("t5")),
        }
        for variant, options in VARIANTS.items():
            cases[variant] = lambda path, options=options: write_tiny_model(path, **{**options, **small})  # type: ignore[misc]
        for case, write in cases.items():
            write(folder / f"{case}.gguf")
            yield (folder / f"{case}.gguf").read_bytes()
        write_tiny_model(folder / "split.gguf", split_max_tensors=6, **small)
        first, second = ((folder / f"split-0000{number}-of-00002.gguf").read_bytes() for number in (1, 2))
        yield _SPLIT + struct.pack("<I", len(first)) + first + second


def _mutate(content: bytes, max_size: int, seed: int) -> bytes:
    random = Random(seed)
    if not content.startswith(_SPLIT) or random.random() < 0.1:
        return damaged_gguf(content, max_size, random)
    (size,) = struct.unpack_from("<I", content.ljust(16), len(_SPLIT))
    start = len(_SPLIT) + 4
    first, second = content[start : start + size], content[start + size :]
    if random.random() < 0.5:
        first = damaged_gguf(first, max_size, random)
    else:
        second = damaged_gguf(second, max_size, random)
    return (_SPLIT + struct.pack("<I", len(first)) + first + second)[:max_size]


if __name__ == "__main__":
    fuzz(test_file, _seeds(), mutate=_mutate)
