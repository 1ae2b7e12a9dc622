"""The configuration of Llama files: read exactly, and refused where its numbers contradict each other.

What the other architectures have beside it is in test_architectures.py.
"""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf_files import tiny_vocabulary, write_tiny_llama

from paceline.errors import ModelFormatError, PacelineError, UnsupportedModelError
from paceline.models import GGUFFile, LayerConfig, ModelConfig, Rope, read_config


def config_of(path: Path) -> ModelConfig:
    with GGUFFile.open(path) as file:
        return read_config(file)


def test_reads_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_llama(path, num_layers=3, num_heads=2, num_kv_heads=1, is_head_tied=False, rope_theta=5e5)
    config = config_of(path)
    assert config == ModelConfig(
        architecture="llama",
        num_layers=3,
        hidden_size=64,
        intermediate_size=96,
        num_heads=2,
        num_kv_heads=1,
        head_dim=32,
        vocab_size=320,
        context_length=256,
        rms_norm_eps=float(np.float32(1e-5)),
        is_head_tied=False,
        rope_dim=32,
        is_rope_split=False,
        ropes=(Rope(tuple(5e5 ** (-2.0 * i / 32) for i in range(16))),),
        layers=(LayerConfig(),) * 3,
        attention_scale=32**-0.5,
    )


def test_the_default_model(smollm2_path: Path) -> None:
    config = config_of(smollm2_path)
    assert (config.num_layers, config.hidden_size, config.intermediate_size) == (30, 576, 1536)
    assert (config.num_heads, config.num_kv_heads, config.head_dim, config.rope_dim) == (9, 3, 64, 64)
    assert (config.vocab_size, config.context_length, config.is_head_tied) == (49152, 8192, True)


SOUND: dict[str, Any] = {
    "llama.block_count": 1,
    "llama.context_length": 64,
    "llama.embedding_length": 32,
    "llama.feed_forward_length": 32,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.rope.dimension_count": 8,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


def write_crafted(
    path: Path,
    changes: dict[str, Any] | None = None,
    tensors: dict[str, np.ndarray | None] | None = None,
    architecture: str = "llama",
) -> None:
    """A sound one-layer file with metadata replaced (or left out: None) and tensors likewise."""
    writer = gguf.GGUFWriter(str(path), architecture)
    for key, value in {**SOUND, "tokenizer.ggml.tokens": tiny_vocabulary(260)[0], **(changes or {})}.items():
        match value:
            case None:
                continue
            case str():
                writer.add_string(key, value)
            case float():
                writer.add_float32(key, value)
            case int() if value >= 0:
                writer.add_uint32(key, value)
            case int():
                writer.add_int32(key, value)
            case _:
                writer.add_array(key, value)
    shapes = {
        "token_embd.weight": (260, 32),
        "output_norm.weight": (32,),
        "blk.0.attn_norm.weight": (32,),
        "blk.0.attn_q.weight": (32, 32),
        "blk.0.attn_k.weight": (16, 32),
        "blk.0.attn_v.weight": (16, 32),
        "blk.0.attn_output.weight": (32, 32),
        "blk.0.ffn_norm.weight": (32,),
        "blk.0.ffn_gate.weight": (32, 32),
        "blk.0.ffn_up.weight": (32, 32),
        "blk.0.ffn_down.weight": (32, 32),
    }
    content = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()} | (tensors or {})
    for name, array in content.items():
        if array is not None:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_the_crafted_file_is_sound_and_defaults_apply(tmp_path: Path) -> None:
    path = tmp_path / "sound.gguf"
    write_crafted(path, {"llama.attention.head_count_kv": 2, "llama.rope.dimension_count": None})
    config = config_of(path)
    assert (config.rope_dim, config.ropes[0].frequencies[1], config.vocab_size) == (8, 0.1, 260)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"llama.embedding_length": None}, "'llama.embedding_length' is missing"),
        ({"llama.embedding_length": 0}, "llama.embedding_length is 0"),
        ({"llama.block_count": 0}, "llama.block_count is 0"),
        ({"llama.block_count": 1 << 31}, "llama.block_count is 2147483648"),
        ({"llama.block_count": 1 << 20}, "1048576 layers, but only 11 tensors"),
        ({"llama.block_count": 2}, "'blk.1.attn_norm.weight' is missing"),
        ({"llama.attention.head_count": 0}, "head_count is 0"),
        ({"llama.attention.head_count": 3}, "3 heads do not divide the hidden size 32"),
        ({"llama.attention.head_count_kv": 3}, "3 key/value heads do not divide 4 heads"),
        ({"llama.attention.head_count_kv": [2, 2]}, "should be a whole number, not an array"),
        ({"llama.attention.head_count": 32, "llama.attention.head_count_kv": 16}, "head width 1 is odd"),
        ({"llama.rope.dimension_count": 7}, "dimension_count 7 is odd"),
        ({"llama.rope.dimension_count": 16}, "above the head width 8"),
        ({"llama.rope.freq_base": 0.0}, "freq_base 0.0 is not a number above 1"),
        ({"llama.rope.freq_base": float("nan")}, "freq_base nan is not a number above 1"),
        ({"llama.rope.scaling.factor": -2.0}, "scaling.factor -2.0 is not a number from"),
        (
            {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.yarn_beta_fast": 0.5},
            "yarn_beta_fast 0.5 is not above yarn_beta_slow 1.0",
        ),
        (
            {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.attn_factor": 0.0},
            "attn_factor 0.0 is not a number from",
        ),
        ({"llama.attention.sliding_window": -1}, "sliding_window is -1"),
        ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "epsilon nan is not between"),
        ({"llama.attention.layer_norm_rms_epsilon": -1.0}, "epsilon -1.0 is not between"),
        ({"llama.feed_forward_length": 64}, r"'blk.0.ffn_gate.weight' has shape \(32, 32\), expected \(64, 32\)"),
        ({"llama.vocab_size": 259}, "260 tokens for 259 embedding rows"),
        ({"llama.vocab_size": 300}, r"'token_embd.weight' has shape \(260, 32\), expected \(300, 32\)"),
        ({"tokenizer.ggml.tokens": None}, "'tokenizer.ggml.tokens' is missing"),
    ],
)
def test_contradictions_are_named(changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    write_crafted(path, changes)
    with pytest.raises(ModelFormatError, match=expected):
        config_of(path)


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        ({"token_embd.weight": None}, "'token_embd.weight' is missing"),
        ({"output_norm.weight": None}, "'output_norm.weight' is missing"),
        ({"blk.0.attn_k.weight": None}, "'blk.0.attn_k.weight' is missing"),
        ({"blk.0.attn_k.weight": np.zeros((32, 32), np.float32)}, r"shape \(32, 32\), expected \(16, 32\)"),
        ({"output.weight": np.zeros((32, 260), np.float32)}, r"shape \(32, 260\), expected \(260, 32\)"),
        ({"blk.0.attn_q.bias": np.zeros(32, np.float32)}, "'blk.0.attn_q.bias' has no place in architecture 'llama'"),
        ({"blk.0.attn_q_norm.weight": np.ones(8, np.float32)}, "'blk.0.attn_q_norm.weight' has no place"),
        ({"rope_freqs.weight": np.ones(8, np.float32)}, r"'rope_freqs.weight' has shape \(8,\), expected \(4,\)"),
        (
            {"rope_freqs.weight": np.zeros(4, np.float32)},
            "'rope_freqs.weight' holds something that is not a number from",
        ),
    ],
)
def test_wrong_tensors_are_named(tensors: dict[str, np.ndarray | None], expected: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    write_crafted(path, tensors=tensors)
    with pytest.raises(PacelineError, match=expected):
        config_of(path)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"llama.expert_count": 8}, "mixtures of experts"),
        ({"llama.expert_count": [8]}, "mixtures of experts"),
        ({"llama.rope.scaling.type": "longrope"}, "rope scaling 'longrope' is not supported"),
        ({"llama.rope.scaling.type": "dynamic"}, "rope scaling 'dynamic' is not supported"),
        ({"llama.rope.scaling.yarn_log_multiplier": 0.1}, "llama.rope.scaling.yarn_log_multiplier' is not supported"),
        ({"llama.rope.scaling.attn_factor": 1.2}, "attn_factor is supported with YaRN only"),
        ({"llama.attention.temperature_scale": 0.1}, "attention temperature by position"),
        ({"llama.pooling_type": 3}, "embedding models"),
        ({"llama.final_logit_softcapping": 30.0}, "softcapping of logits"),
        ({"general.type": "adapter"}, "LoRA adapter, not a model"),
        ({"general.type": "mmproj"}, "type 'mmproj', not a model"),
        ({"llama.attention.value_length": 16}, "value heads of another width"),
        ({"split.count": 2}, "one part of a split model"),
    ],
)
def test_unsupported_features_are_named(changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    path = tmp_path / "feature.gguf"
    write_crafted(path, changes)
    with pytest.raises(UnsupportedModelError, match=expected):
        config_of(path)


@pytest.mark.parametrize("sizes", [{"hidden_size": 80, "num_heads": 4}, {"intermediate_size": 100}])
def test_sizes_that_no_kernel_takes_are_named(tmp_path: Path, sizes: dict[str, int]) -> None:
    write_tiny_llama(tmp_path / "m.gguf", tensor_type="F32", **sizes)
    with (
        GGUFFile.open(tmp_path / "m.gguf") as file,
        pytest.raises(UnsupportedModelError, match="multiples of 8"),
    ):
        read_config(file)
