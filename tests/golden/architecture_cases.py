"""Tiny models whose logits transformers has computed: how each is written, and what each is asked.

Shared by the generator beside this file and by the tests that read `architectures.json`.
"""

from pathlib import Path
from typing import Any

import numpy as np
from gguf_files import FloatTensors, write_tiny_model

from paceline.models.architectures.rope import llama3_rope, plain_rope

NUM_TOKENS = 60
POSITIONS = (3, 21, 40, 59)
IDS = tuple(range(0, 320, 13))
WINDOW = 20  # crosses pages of 16

# The arguments of the scalings, by the names that both kinds of files have for them.
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"factor": 4.0, "original_max_position_embeddings": 64}


def llama3_divisors(theta: float, dim: int) -> list[float]:
    plain, scaled = plain_rope(theta, dim), llama3_rope(theta, dim, *LLAMA3.values())
    return [a / b for a, b in zip(plain.frequencies, scaled.frequencies, strict=True)]


def yarn_metadata(architecture: str) -> dict[str, Any]:
    return {
        f"{architecture}.rope.scaling.type": "yarn",
        f"{architecture}.rope.scaling.factor": YARN["factor"],
        f"{architecture}.rope.scaling.original_context_length": YARN["original_max_position_embeddings"],
    }


def linear_metadata(architecture: str, factor: float) -> dict[str, Any]:
    return {f"{architecture}.rope.scaling.type": "linear", f"{architecture}.rope.scaling.factor": factor}


CASES: dict[str, dict[str, Any]] = {
    "llama": {"architecture": "llama"},
    "llama-linear": {"architecture": "llama", "seed": 1, "extra_metadata": linear_metadata("llama", 4.0)},
    "llama-3": {"architecture": "llama", "seed": 2, "rope_theta": 5e5, "rope_divisors": llama3_divisors(5e5, 16)},
    "llama-yarn": {"architecture": "llama", "seed": 3, "extra_metadata": yarn_metadata("llama")},
    "mistral": {"architecture": "llama", "seed": 4, "sliding_window": WINDOW, "is_head_tied": False},
    "qwen2": {"architecture": "qwen2", "seed": 5, "is_head_tied": False},
    "qwen2-yarn": {"architecture": "qwen2", "seed": 6, "rope_theta": 1e6, "extra_metadata": yarn_metadata("qwen2")},
    "qwen3": {"architecture": "qwen3", "seed": 7, "head_dim": 32, "rms_norm_eps": 1e-6},
    "gemma3": {
        "architecture": "gemma3",
        "seed": 8,
        "num_layers": 7,
        "num_kv_heads": 1,
        "head_dim": 32,
        "rope_theta": 1e6,
        "rms_norm_eps": 1e-6,
        "sliding_window": WINDOW,
        "extra_metadata": linear_metadata("gemma3", 8.0),
    },
}


def write_case(path: Path, name: str) -> FloatTensors:
    return write_tiny_model(path, tensor_type="F32", **CASES[name])


def case_tokens(name: str) -> list[int]:
    random = np.random.default_rng(1000 + CASES[name].get("seed", 0))
    return [int(token) for token in random.integers(0, 320, NUM_TOKENS)]
