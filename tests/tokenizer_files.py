"""GGUF files that hold a tokenizer and nothing else, written without the code under test."""

from pathlib import Path
from typing import Any

import gguf
from gguf_files import byte_alphabet

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def write_vocabulary(path: Path, settings: dict[str, Any]) -> None:
    """`settings`: values of `tokenizer.ggml.…` keys; None leaves a key out."""
    writer = gguf.GGUFWriter(str(path), "llama")
    for key, value in settings.items():
        key = f"tokenizer.ggml.{key}"
        match value:
            case None:
                continue
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case str():
                writer.add_string(key, value)
            case bytes():
                writer.add_array(key, value)
            case _ if value:  # the writer cannot express an empty array
                writer.add_array(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def byte_level_settings(pre: str | None, merges: list[str]) -> dict[str, Any]:
    """A byte-level vocabulary: two control tokens, every byte, and what the merges make."""
    tokens = ["<s>", "</s>", *byte_alphabet(), *dict.fromkeys(merge.replace(" ", "") for merge in merges)]
    return {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "token_type": [CONTROL] * 2 + [NORMAL] * (len(tokens) - 2),
        "merges": merges,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }


def sentencepiece_settings(pieces: list[tuple[str, float, int]], *, model: str = "llama") -> dict[str, Any]:
    """`pieces`: name, score and type of each token."""
    return {
        "model": model,
        "tokens": [name for name, _, _ in pieces],
        "scores": [float(score) for _, score, _ in pieces],
        "token_type": [kind for _, _, kind in pieces],
        "unknown_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
