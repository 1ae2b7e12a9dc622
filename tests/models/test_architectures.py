"""What sets architectures apart is read from their files, and what does not run is named."""

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf_files import write_tiny_model

from paceline.errors import PacelineError, UnsupportedModelError
from paceline.models import LayerConfig, ModelConfig, Rope, TensorRole, TensorType, open_model
from paceline.models.architectures import refusal
from paceline.models.architectures.rope import divided_rope, linear_rope, llama3_rope, plain_rope, yarn_rope


def config_of(folder: Path, **options: Any) -> ModelConfig:
    write_tiny_model(folder / "m.gguf", tensor_type="F32", **options)
    with open_model(folder / "m.gguf") as model:
        return model.config


def test_qwen2(tmp_path: Path) -> None:
    config = config_of(tmp_path, architecture="qwen2")
    assert (config.architecture, config.is_rope_split, config.has_qkv_bias) == ("qwen2", True, True)
    assert not (config.has_qk_norm or config.has_post_norms)
    assert config.layers == (LayerConfig(),) * 2


def test_qwen3(tmp_path: Path) -> None:
    config = config_of(tmp_path, architecture="qwen3", head_dim=128)
    assert (config.architecture, config.is_rope_split, config.has_qk_norm) == ("qwen3", True, True)
    assert not (config.has_qkv_bias or config.has_post_norms)
    assert (config.head_dim, config.rope_dim, config.attention_scale) == (128, 128, 128**-0.5)


def test_mistral_windows_bind_every_layer(tmp_path: Path) -> None:
    config = config_of(tmp_path, sliding_window=24)
    assert config.layers == (LayerConfig(window=24),) * 2
    assert config_of(tmp_path, sliding_window=0).layers == (LayerConfig(),) * 2


def test_gemma3(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        architecture="gemma3",
        num_layers=13,
        rope_theta=1e6,
        sliding_window=24,
        extra_metadata={"gemma3.rope.scaling.type": "linear", "gemma3.rope.scaling.factor": 8.0},
    )
    local, everywhere = LayerConfig(window=24, rope=1), LayerConfig()
    assert config.layers == (*(local,) * 5, everywhere, *(local,) * 5, everywhere, local)
    assert config.ropes == (linear_rope(1e6, 16, 8.0), plain_rope(1e4, 16))  # windows are never stretched
    assert (config.activation, config.embedding_scale) == ("gelu_tanh", 8.0)
    assert config.has_qk_norm
    assert config.has_post_norms
    assert not config.has_qkv_bias
    assert config.attention_scale == 16**-0.5


def test_the_largest_gemma3_scales_by_another_width(tmp_path: Path) -> None:
    options = {"architecture": "gemma3", "head_dim": 32, "sliding_window": 24}
    assert config_of(tmp_path, num_layers=62, **options).attention_scale == 16**-0.5
    assert config_of(tmp_path, num_layers=48, **options).attention_scale == 32**-0.5


YARN = {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, plain_rope(1e4, 16)),
        ({"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 4.0}, plain_rope(1e4, 16)),
        ({"llama.rope.scaling.type": "linear"}, plain_rope(1e4, 16)),
        ({"llama.rope.scaling.factor": 0.0}, plain_rope(1e4, 16)),
        ({"llama.rope.scaling.factor": 4.0}, linear_rope(1e4, 16, 4.0)),
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}, linear_rope(1e4, 16, 4.0)),
        ({"llama.rope.scale_linear": 4.0}, linear_rope(1e4, 16, 4.0)),
        (YARN, yarn_rope(1e4, 16, 4.0, 256)),
        (YARN | {"llama.rope.scaling.original_context_length": 64}, yarn_rope(1e4, 16, 4.0, 64)),
        (YARN | {"llama.rope.scaling.yarn_beta_fast": 8.0}, yarn_rope(1e4, 16, 4.0, 256, beta_fast=8.0)),
        (YARN | {"llama.rope.scaling.yarn_beta_slow": 2.0}, yarn_rope(1e4, 16, 4.0, 256, beta_slow=2.0)),
        (
            YARN | {"llama.rope.scaling.attn_factor": 0.5},
            yarn_rope(1e4, 16, 4.0, 256, magnitude=0.5 * (0.1 * math.log(4) + 1)),
        ),
    ],
)
def test_rope_scaling(metadata: dict[str, Any], expected: Rope, tmp_path: Path) -> None:
    assert config_of(tmp_path, extra_metadata=metadata).ropes == (expected,)


def test_rope_divisors(tmp_path: Path) -> None:
    divisors = [1.0, 1.0, 1.5, 2.5, 4.0, 8.0, 8.0, 8.0]
    assert config_of(tmp_path, rope_divisors=divisors).ropes == (divided_rope(1e4, 16, divisors),)
    with pytest.raises(UnsupportedModelError, match=r"rope scaling 'linear' on top of rope_freqs\.weight"):
        config_of(tmp_path, rope_divisors=divisors, extra_metadata={"llama.rope.scaling.factor": 2.0})


def test_llama3_rope_keeps_fast_pairs_and_divides_slow_ones() -> None:
    plain, scaled = plain_rope(5e5, 64).frequencies, llama3_rope(5e5, 64, 8.0, 1.0, 4.0, 8192).frequencies
    for before, after in zip(plain, scaled, strict=True):
        turns = 8192 * before / (2 * math.pi)
        if turns >= 4:
            assert after == before
        elif turns <= 1:
            assert after == before / 8
        else:
            assert before / 8 < after < before


def test_yarn_rope() -> None:
    plain, scaled = plain_rope(1e6, 128), yarn_rope(1e6, 128, 4.0, 32768)
    assert scaled.magnitude == 0.1 * math.log(4) + 1
    assert scaled.frequencies[0] == plain.frequencies[0]
    assert scaled.frequencies[-1] == plain.frequencies[-1] / 4
    assert yarn_rope(1e6, 128, 4.0, 32768, magnitude=1.0) == Rope(scaled.frequencies)
    unstretched = yarn_rope(1e6, 128, 1.0, 32768)
    assert unstretched.frequencies == pytest.approx(plain.frequencies, rel=1e-15)
    assert unstretched.magnitude == 1.0


def test_divisors_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        divided_rope(1e4, 16, [1.0] * 7)


def test_vectors_are_f32_whatever_the_file_holds(tmp_path: Path) -> None:
    for vector_type in ("F32", "F16", "BF16"):
        path = tmp_path / f"{vector_type}.gguf"
        tensors = write_tiny_model(path, architecture="qwen2", vector_type=vector_type)
        with open_model(path) as model:
            for role, name in ((TensorRole("q_bias", 1), "blk.1.attn_q.bias"), (TensorRole("output_norm"), None)):
                info = model.tensors[role]
                assert (info.type, info.num_bytes) == (TensorType.F32, 4 * info.shape[0])
                expected = tensors[name or "output_norm.weight"]
                np.testing.assert_array_equal(model.data(role).view(np.float32), expected)


def test_packed_vectors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=r"'output_norm\.weight' has type Q8_0, only F32, F16 and BF16 are"):
        config_of(tmp_path, vector_type="Q8_0")


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ("mamba2", "recurrent and state-space models"),
        ("rwkv7", "recurrent and state-space models"),
        ("qwen3next", "recurrent and state-space models"),
        ("lfm2moe", "recurrent and state-space models"),
        ("qwen2moe", "mixtures of experts"),
        ("deepseek2", "mixtures of experts"),
        ("gpt-oss", "mixtures of experts"),
        ("clip", "vision models"),
        ("qwen2vl", "vision models"),
        ("nomic-bert-moe", "embedding models"),
        ("gemma-embedding", "embedding models"),
        ("dream", "diffusion models"),
        ("t5", "encoder-decoder models"),
    ],
)
def test_what_an_unsupported_architecture_is(architecture: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_tensor("token_embd.weight", np.zeros((8, 8), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(UnsupportedModelError) as caught, open_model(path):
        pass
    assert f"architecture '{architecture}' is not supported ({expected} are not); supported: gemma3, llama, " in str(
        caught.value
    )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("architecture", ["gemma2", "gemma", "phi3", "command-r", "falcon", "olmo2"])
def test_other_architectures_are_unsupported_by_name(architecture: str) -> None:
    assert refusal(architecture) == (
        f"architecture '{architecture}' is not supported; supported: gemma3, llama, qwen2, qwen3"
    )


@pytest.mark.parametrize("architecture", ["qwen2", "qwen3"])
def test_windows_of_layers_that_nobody_names_are_refused(architecture: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=f"sliding-window attention is not supported for '{architecture}'"):
        config_of(tmp_path, architecture=architecture, sliding_window=64)


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    """A Gemma 3 that says nothing about its window, and a Qwen2 file under the name of one with other norms."""
    with pytest.raises(PacelineError, match=r"'gemma3\.attention\.sliding_window' is missing"):
        config_of(tmp_path, architecture="gemma3")
    path = tmp_path / "renamed.gguf"
    write_tiny_model(path, architecture="qwen2")
    path.write_bytes(path.read_bytes().replace(b"qwen2", b"qwen3"))
    with pytest.raises(PacelineError, match=r"'blk\.0\.attn_q_norm\.weight' is missing"), open_model(path):
        pass
