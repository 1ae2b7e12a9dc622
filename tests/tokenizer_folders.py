"""Hugging Face folders that hold a tokenizer, of each kind that there is, written without the code under test."""

import json
from pathlib import Path
from typing import Any

from gguf_files import byte_alphabet, tiny_vocabulary

SPACE = "\u2581"
_, MERGES = tiny_vocabulary(400)
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
WORDS = ("hello", "world", "the")


def write_folder(path: Path, tokenizer: dict[str, Any], **files: dict[str, Any]) -> Path:
    """tokenizer.json, and `files` by name without the ending: `tokenizer_config={…}`."""
    path.mkdir(exist_ok=True)
    for name, content in {"tokenizer": tokenizer, **files}.items():
        (path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return path


def added(token_id: int, content: str, *, special: bool, **flags: bool) -> dict[str, Any]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": token_id, "content": content, "special": special, **plain, **flags}


def template(before: str | None, after: str | None = None) -> dict[str, Any]:
    names = [name for name in (before, after) if name is not None]
    single = [{"Sequence": {"id": "A", "type_id": 0}}]
    if before is not None:
        single.insert(0, {"SpecialToken": {"id": before, "type_id": 0}})
    if after is not None:
        single.append({"SpecialToken": {"id": after, "type_id": 0}})
    tokens = {name: {"id": name, "ids": [index], "tokens": [name]} for index, name in enumerate(names)}
    return {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": tokens}


def byte_level(**changes: Any) -> dict[str, Any]:
    """Like Llama 3: control tokens behind the vocabulary, and one that ordinary text may hold."""
    tokens = [*byte_alphabet(), *dict.fromkeys(merge.replace(" ", "") for merge in MERGES)]
    size = len(tokens)
    split = {"type": "Split", "pattern": {"Regex": LLAMA3}, "behavior": "Isolated", "invert": False}
    to_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "added_tokens": [
            added(size, "<|begin|>", special=True),
            added(size + 1, "<|end|>", special=True),
            added(size + 2, "<tool>", special=False),
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, to_bytes]},
        "post_processor": {"type": "Sequence", "processors": [to_bytes, template("<|begin|>")]},
        "decoder": to_bytes,
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": MERGES},
        **changes,
    }


def pieces() -> tuple[list[str], list[str]]:
    """Tokens and merges of a SentencePiece-like vocabulary."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), SPACE, *"helowrdt"]
    merges = []
    for word in WORDS:
        merges += [f"{word[:end]} {word[end]}" for end in range(1, len(word))]
        merges.append(f"{SPACE} {word}")
    tokens += dict.fromkeys(merge.replace(" ", "") for merge in merges)
    return tokens, merges


def sentencepiece(scheme: str | None, **changes: Any) -> dict[str, Any]:
    """Like Llama 2: spaces put in front by the normaliser or, with a `scheme`, by the pre-tokenizer."""
    tokens, merges = pieces()
    prepend, replace = {"type": "Prepend", "prepend": SPACE}, {"type": "Replace", "pattern": {"String": " "}}
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": False}
    normalizer = {"type": "Sequence", "normalizers": [prepend, {**replace, "content": SPACE}]}
    decoders = [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]
    return {
        "version": "1.0",
        "added_tokens": [added(i, tokens[i], special=True) for i in range(3)]
        + [added(len(tokens), "<tool>", special=False)],
        "normalizer": None if scheme else normalizer,
        "pre_tokenizer": metaspace if scheme else None,
        "post_processor": template("<s>", "</s>"),
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in merges],
        },
        **changes,
    }


def unigram() -> dict[str, Any]:
    tokens, _ = pieces()
    content = sentencepiece("always")
    vocabulary = [[token, 0.0 if i < 259 else -1.0 - i / 100] for i, token in enumerate(tokens)]
    content["model"] = {"type": "Unigram", "unk_id": 0, "vocab": vocabulary, "byte_fallback": True}
    content["pre_tokenizer"]["split"] = True
    return content
