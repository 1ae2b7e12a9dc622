"""Damaged Hugging Face folders: configurations, tensor tables, indices and tokenizers with changes in a few places.

An input is a choice of folder and the seed of the changes, so that a few bytes say everything.
"""

import copy
import json
import shutil
import struct
import tempfile
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import atheris
from harness import attempt, fuzz
from hf_files import FAMILIES, config_of, write_folder, write_tokenizer
from mutations import damaged_json, noisy
from tokenizer_folders import byte_level, sentencepiece, unigram
from uses import run_model, use_template, use_tokenizer

from paceline.models import HFModel, Tokenizer

_FOLDER = Path(tempfile.mkdtemp())
_SHARE_RUN = 4  # one in so many folders that open is loaded into the runtime
_ROPES: list[dict[str, Any]] = [
    {"rope_type": "linear", "factor": 2.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 32.0, "beta_slow": 1.0},
    {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 0.5, "attention_factor": 1.0},
    {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
]
_TOKENIZERS = [byte_level, lambda: sentencepiece(None), lambda: sentencepiece("first"), unigram]
Files = dict[str, Any]
"""By name: a JSON value; bytes; or a tensor table and the bytes behind it."""


def _folders() -> list[Files]:
    """Model folders of each family, whole and in shards, then tokenizers of each kind without a model."""
    folders = []
    for index, family in enumerate(FAMILIES):
        config = config_of(family, num_hidden_layers=1, rope_scaling=_ROPES[index % len(_ROPES)])
        folder = _FOLDER / "seed"
        write_folder(folder, config, num_shards=1 + index % 2, dtype=("BF16", "F16", "F32")[index % 3])
        write_tokenizer(folder)
        folders.append({path.name: _content(path) for path in sorted(folder.iterdir())})
        shutil.rmtree(folder)
    settings = {"bos_token": "<s>", "add_bos_token": True, "added_tokens_decoder": {"3": {"content": "<x>"}}}
    for make in _TOKENIZERS:
        generation = {"eos_token_id": [1, 2]}
        files = {"tokenizer.json": make(), "tokenizer_config.json": settings, "generation_config.json": generation}
        folders.append(files)
    return folders


def _content(path: Path) -> Any:
    raw = path.read_bytes()
    if path.suffix == ".json":
        return json.loads(raw)
    (length,) = struct.unpack_from("<Q", raw)
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


_SEEDS = _folders()


def test_folder(content: bytes) -> None:
    provider = atheris.FuzzedDataProvider(content)
    random = Random(provider.ConsumeInt(8))
    files = copy.copy(_SEEDS[provider.ConsumeIntInRange(0, len(_SEEDS) - 1)])
    folder = _FOLDER / "model"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for _ in range(provider.ConsumeIntInRange(1, 4)):
        name = random.choice(sorted(files))
        files[name] = _damaged(files[name], random)
    for name, value in files.items():
        (folder / name).write_bytes(_encoded(value))
    if random.random() < 0.02:
        (folder / random.choice(sorted(files))).unlink()
    tokenizers: list[Tokenizer] = []
    attempt(lambda: tokenizers.append(Tokenizer.from_folder(folder)))
    for tokenizer in tokenizers:
        attempt(partial(use_tokenizer, tokenizer))
    attempt(lambda: _open(folder, random, tokenizers))


def _damaged(value: Any, random: Random) -> Any:
    if isinstance(value, bytes):
        return noisy(value, random)
    kind = random.random()
    if kind < 0.1:
        return noisy(_encoded(value), random)
    if not isinstance(value, tuple):
        return damaged_json(value, random)
    table, data = value
    if kind < 0.8:
        return damaged_json(table, random), data
    if kind < 0.9:
        return table, data[: random.randrange(len(data))]
    noise = bytearray(data)
    for _ in range(64):
        noise[random.randrange(len(noise))] = random.choice([0x7F, 0x80, 0xFF, random.randrange(256)])
    return table, bytes(noise)


def _encoded(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, tuple):
        return json.dumps(value).encode()
    table, data = value
    raw = json.dumps(table).encode()
    return struct.pack("<Q", len(raw)) + raw + bytes(data)


def _open(folder: Path, random: Random, tokenizers: list[Tokenizer]) -> None:
    with HFModel(folder, random.choice(["q8", "q4", "none"])) as model:
        attempt(model.tokenizer)
        attempt(lambda: use_template(model.chat_template(), tokenizers))
        if random.randrange(_SHARE_RUN) == 0:
            attempt(lambda: run_model(model))


if __name__ == "__main__":
    fuzz(test_folder, (bytes([1, index]) * 8 for index in range(len(_SEEDS))))
