"""config.json as numbers: read exactly in the spellings of transformers 4 and 5, and refused where it cannot be run."""

import json
from pathlib import Path
from typing import Any

import pytest
from hf_files import HEAD_DIM, config_of

from paceline.errors import ModelFormatError, UnsupportedModelError
from paceline.models.architectures.rope import linear_rope, llama3_rope, plain_rope, yarn_rope
from paceline.models.base import LayerConfig, ModelConfig, Rope
from paceline.models.hf.config import read_config
from paceline.models.hf.settings import read_settings

PLAIN = plain_rope(10000.0, HEAD_DIM)
FULL = LayerConfig()
LLAMA3 = {
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3",
}
SCALED = llama3_rope(10000.0, HEAD_DIM, 32.0, 1.0, 4.0, 8192)


def read(tmp_path: Path, config: dict[str, Any] | str, num_tensors: int = 100) -> ModelConfig:
    path = tmp_path / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return read_config(read_settings(path), num_tensors)


def test_llama(tmp_path: Path) -> None:
    assert read(tmp_path, config_of()) == ModelConfig(
        architecture="llama",
        num_layers=2,
        hidden_size=64,
        intermediate_size=96,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        vocab_size=320,
        context_length=256,
        rms_norm_eps=1e-5,
        is_head_tied=False,
        rope_dim=16,
        is_rope_split=True,
        ropes=(PLAIN,),
        layers=(FULL, FULL),
        attention_scale=0.25,
    )


def test_what_sets_the_families_apart(tmp_path: Path) -> None:
    found = {name: read(tmp_path, config_of(name)) for name in ("llama", "mistral", "qwen2", "qwen3", "gemma3_text")}
    assert found["mistral"] == found["llama"]
    qwen2, qwen3, gemma = found["qwen2"], found["qwen3"], found["gemma3_text"]
    assert (qwen2.architecture, qwen2.has_qkv_bias, qwen2.has_qk_norm) == ("qwen2", True, False)
    assert (qwen3.architecture, qwen3.has_qkv_bias, qwen3.has_qk_norm) == ("qwen3", False, True)
    assert (gemma.architecture, gemma.has_qk_norm, gemma.has_post_norms) == ("gemma3", True, True)
    assert (gemma.embedding_scale, gemma.activation, gemma.attention_scale) == (8.0, "gelu_tanh", 0.25)
    assert gemma.layers == (LayerConfig(32, 1), LayerConfig(32, 1))
    assert gemma.ropes == (plain_rope(1e6, HEAD_DIM), PLAIN)


@pytest.mark.parametrize(("model_type", "expected"), [("llama", False), ("qwen2", False), ("gemma3_text", True)])
def test_whether_the_head_is_tied(model_type: str, expected: bool, tmp_path: Path) -> None:
    assert read(tmp_path, config_of(model_type, tie_word_embeddings=None)).is_head_tied is expected
    for value in (True, False):
        assert read(tmp_path, config_of(model_type, tie_word_embeddings=value)).is_head_tied is value


def test_width_of_a_head(tmp_path: Path) -> None:
    for model_type, expected in (("llama", 16), ("mistral", 16), ("qwen2", 16), ("qwen3", 128), ("gemma3_text", 256)):
        assert read(tmp_path, config_of(model_type, head_dim=None)).head_dim == expected
    wide = read(tmp_path, config_of(head_dim=32, query_pre_attn_scalar=4))
    assert (wide.head_dim, wide.rope_dim, wide.attention_scale) == (32, 32, 32**-0.5)
    assert read(tmp_path, config_of("gemma3_text", query_pre_attn_scalar=4)).attention_scale == 0.5


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rope_theta": 5e5}, plain_rope(5e5, HEAD_DIM)),
        ({"rope_theta": None}, PLAIN),
        ({"rope_scaling": None}, PLAIN),
        ({"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}, plain_rope(5e5, 16)),
        ({"rope_parameters": {"rope_theta": 5e5}}, plain_rope(5e5, HEAD_DIM)),
        ({"rope_scaling": {"type": "linear", "factor": 4}}, linear_rope(10000.0, HEAD_DIM, 4.0)),
        ({"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, linear_rope(10000.0, HEAD_DIM, 4.0)),
        ({"rope_parameters": {"rope_type": "linear", "factor": 4.0}}, linear_rope(10000.0, HEAD_DIM, 4.0)),
        ({"rope_scaling": LLAMA3}, SCALED),
        ({"rope_parameters": {**LLAMA3, "rope_theta": 10000.0}}, SCALED),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, yarn_rope(10000.0, HEAD_DIM, 4.0, 256)),
        (
            {
                "rope_scaling": {
                    "rope_type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 64,
                    "beta_fast": 16,
                    "beta_slow": 2,
                    "attention_factor": 1.25,
                }
            },
            yarn_rope(10000.0, HEAD_DIM, 4.0, 64, beta_fast=16.0, beta_slow=2.0, magnitude=1.25),
        ),
        (
            {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0}},
            yarn_rope(10000.0, HEAD_DIM, 4.0, 256, magnitude=1.0),
        ),
        (
            {"rope_parameters": {"rope_type": "yarn", "original_max_position_embeddings": 64}},
            yarn_rope(10000.0, HEAD_DIM, 4.0, 64),
        ),
    ],
)
def test_rotary_frequencies(changes: dict[str, Any], expected: Rope, tmp_path: Path) -> None:
    assert read(tmp_path, config_of(**changes)).ropes == (expected,)


@pytest.mark.parametrize(
    ("changes", "full", "sliding"),
    [
        ({"rope_theta": None}, plain_rope(1e6, HEAD_DIM), PLAIN),
        ({"rope_theta": 5e5, "rope_local_base_freq": 2e4}, plain_rope(5e5, HEAD_DIM), plain_rope(2e4, HEAD_DIM)),
        ({"rope_scaling": {"rope_type": "linear", "factor": 8.0}}, linear_rope(1e6, HEAD_DIM, 8.0), PLAIN),
        (
            {
                "rope_theta": None,
                "rope_parameters": {
                    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5e5},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 2e4},
                },
            },
            linear_rope(5e5, HEAD_DIM, 8.0),
            plain_rope(2e4, HEAD_DIM),
        ),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, plain_rope(1e6, HEAD_DIM), PLAIN),
    ],
)
def test_gemma_turns_its_layers_differently(changes: dict[str, Any], full: Rope, sliding: Rope, tmp_path: Path) -> None:
    assert read(tmp_path, config_of("gemma3_text", **changes)).ropes == (full, sliding)


def test_yarn_stretches_the_context(tmp_path: Path) -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256}
    assert read(tmp_path, config_of(rope_scaling=yarn)).context_length == 1024
    assert read(tmp_path, config_of(rope_scaling=yarn, max_position_embeddings=1024)).context_length == 1024


S, F = "sliding_attention", "full_attention"


@pytest.mark.parametrize(
    ("model_type", "changes", "expected"),
    [
        ("llama", {"sliding_window": 8}, [None] * 4),
        ("mistral", {"sliding_window": None}, [None] * 4),
        ("mistral", {"sliding_window": 8}, [8] * 4),
        ("qwen2", {"sliding_window": 8, "max_window_layers": 2}, [None] * 4),
        ("qwen2", {"sliding_window": 8, "max_window_layers": 2, "use_sliding_window": False}, [None] * 4),
        ("qwen2", {"sliding_window": 8, "max_window_layers": 2, "use_sliding_window": True}, [None, None, 8, 8]),
        ("qwen3", {"sliding_window": 8, "layer_types": [S, F, S, F], "use_sliding_window": True}, [8, None, 8, None]),
        ("qwen3", {"sliding_window": None, "use_sliding_window": True}, [None] * 4),
        ("gemma3_text", {"sliding_window": 8, "layer_types": [S, F, S, S]}, [8, None, 8, 8]),
        ("gemma3_text", {"sliding_window": 8, "sliding_window_pattern": 2}, [8, None, 8, None]),
        ("gemma3_text", {"sliding_window": 8}, [8] * 4),
    ],
)
def test_windows(model_type: str, changes: dict[str, Any], expected: list[int | None], tmp_path: Path) -> None:
    config = read(tmp_path, config_of(model_type, num_hidden_layers=4, **changes))
    assert [layer.window for layer in config.layers] == expected
    is_gemma = model_type == "gemma3_text"
    assert [layer.rope for layer in config.layers] == [int(is_gemma and window is not None) for window in expected]


def test_a_window_that_the_file_leaves_out(tmp_path: Path) -> None:
    config = config_of("mistral")
    del config["sliding_window"]
    assert read(tmp_path, config).layers == (LayerConfig(4096),) * 2


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"hidden_size": None}, "'hidden_size' is missing"),
        ({"hidden_size": 0}, "hidden_size is 0"),
        ({"hidden_size": "64"}, "'hidden_size' should be a whole number, not '64'"),
        ({"hidden_size": [64]}, "'hidden_size' should be a whole number, not an array"),
        ({"hidden_size": True}, "'hidden_size' should be a whole number, not 'True'"),
        ({"hidden_size": 1 << 40}, "hidden_size is 1099511627776"),
        ({"vocab_size": 10**400}, "whole number that fits 64 bits"),
        ({"num_hidden_layers": 1 << 20}, "1048576 layers, but only 100 tensors"),
        ({"num_attention_heads": 3}, "3 heads do not divide the hidden size 64"),
        ({"num_attention_heads": 128, "head_dim": None}, "128 heads do not divide the hidden size 64"),
        ({"num_key_value_heads": 3}, "3 key/value heads do not divide 4 heads"),
        ({"head_dim": 17}, "the head width 17 is odd"),
        ({"rms_norm_eps": None}, "'rms_norm_eps' is missing"),
        ({"rms_norm_eps": -1.0}, "rms_norm_eps -1.0 is not between"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps nan is not between"),
        ({"rms_norm_eps": 10**400}, "should be a number that fits 64 bits"),
        ({"rope_theta": 0.0}, "rope_theta is 0.0, expected a number from 1 to 1e+12"),
        ({"rope_theta": float("inf")}, "rope_theta is inf"),
        ({"rope_scaling": 4.0}, "'rope_scaling' should be an object"),
        ({"rope_scaling": {"type": "linear"}}, "'rope_scaling.factor' is missing"),
        ({"rope_scaling": {"type": "linear", "factor": 0.0}}, "rope_scaling.factor is 0.0"),
        ({"rope_scaling": {**LLAMA3, "low_freq_factor": 4.0}}, "low_freq_factor 4.0 is not below"),
        ({"rope_scaling": {**LLAMA3, "original_max_position_embeddings": 0}}, "original_max_position_embeddings is 0"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}, "rope_theta": 1.0}, "leaves YaRN nothing to stretch"),
        ({"rope_scaling": {"type": "yarn", "factor": 1e6}}, "max_position_embeddings is 256000000"),
        ({"rope_scaling": {"type": "yarn", "factor": 1e300}}, "rope_scaling.factor is 1e+300"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "beta_fast": 1e-300}}, "rope_scaling.beta_fast is 1e-300"),
        (
            {"rope_scaling": {"type": "yarn", "factor": 4.0, "mscale": -9.0, "mscale_all_dim": 1.0}},
            "are no attention temperature",
        ),
        ({"architectures": "LlamaForCausalLM"}, "'architectures' should be an array of strings"),
    ],
)
def test_contradictions_are_named(changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError) as caught:
        read(tmp_path, config_of(**changes))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model_type", "changes", "expected"),
    [
        ("qwen3", {"layer_types": [F]}, "layer_types has 1 entries for 2 layers"),
        ("qwen3", {"layer_types": [F, S]}, "has sliding_attention, but there is no sliding_window"),
        ("gemma3_text", {"sliding_window_pattern": 0}, "sliding_window_pattern is 0"),
        ("gemma3_text", {"sliding_window": 0}, "sliding_window is 0"),
        ("gemma3_text", {"query_pre_attn_scalar": 0}, "query_pre_attn_scalar is 0"),
    ],
)
def test_contradictions_of_a_family(model_type: str, changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=expected):
        read(tmp_path, config_of(model_type, **changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model_type": "phi3"}, "model type 'phi3' is not supported, only llama, mistral"),
        ({"model_type": "mixtral", "num_local_experts": 8}, "it is a mixture of experts ('mixtral')"),
        ({"model_type": "qwen3_moe", "num_experts": 128}, "it is a mixture of experts ('qwen3_moe')"),
        ({"model_type": "deepseek_v3", "n_routed_experts": 256}, "it is a mixture of experts"),
        ({"model_type": "gemma3", "vision_config": {}}, "it is a vision model ('gemma3')"),
        ({"model_type": "qwen2_audio", "audio_config": {}}, "it is an audio model"),
        ({"model_type": "mamba", "state_size": 16}, "it is a recurrent model"),
        ({"model_type": "rwkv"}, "it is a recurrent model"),
        ({"model_type": "bert"}, "it is an encoder or embedding model"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "it is an encoder-decoder model"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "'LlamaForSequenceClassification', only language"),
        ({"architectures": ["Qwen3Model"], "model_type": "qwen3"}, "'Qwen3Model', only language"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantised already, by 'gptq'"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantised already, by 'awq'"),
        ({"quantization_config": {"load_in_4bit": True}}, "quantised already, by 'an unnamed method'"),
        ({"attention_bias": True}, "attention_bias"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"hidden_act": "gelu"}, "activation 'gelu' is not supported"),
        ({"final_logit_softcapping": 30.0}, "softcapping"),
        ({"use_bidirectional_attention": True}, "it is an embedding model"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope scaling 'dynamic' is not supported"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope scaling 'longrope' is not supported"),
        ({"rope_scaling": {"type": "yarn", "factor": 2.0, "truncate": False}}, "truncate"),
        ({"head_dim": 12}, "head width 12 is not supported"),
        ({"intermediate_size": 100}, "intermediate size 100 is not supported"),
        ({"model_type": "qwen3", "head_dim": 16, "layer_types": ["chunked_attention", F]}, "'chunked_attention'"),
    ],
)
def test_what_cannot_be_run_is_told_by_name(changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        read(tmp_path, config_of() | changes)
    assert expected in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_does_not_say_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="'model_type' is missing"):
        read(tmp_path, config_of() | {"model_type": None})


def test_biases_of_qwen2_are_not_in_its_file(tmp_path: Path) -> None:
    assert read(tmp_path, config_of("qwen2", attention_bias=True)).has_qkv_bias


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no sound JSON"),
        ("{", "no sound JSON"),
        ("[1]", "should hold a JSON object"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ("[" * 100_000, "no sound JSON"),
        (" " * (1 << 24) + "{}", "is larger than"),
    ],
)
def test_no_json(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=expected):
        read(tmp_path, text)
