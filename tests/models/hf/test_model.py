"""Folders as models: every tensor in the type that was asked for, and the forward that its numbers mean."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy_decoder
import pytest
from hf_files import Floats, config_of, encoded, random_tensors, write_folder

from paceline.errors import ModelFormatError, ModelNotFoundError, PacelineError, UnsupportedModelError, UsageError
from paceline.models.base import ModelConfig, TensorRole, TensorType
from paceline.models.hf import HFModel
from paceline.models.hf.quantize import to_q4_1, to_q8_0
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime

MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3", "gemma3_text")
TOKENS = [5, 17, 300, 2, 88, 88, 261, 40, 7, 199, 3, 3, 120, 64, 255, 31, 8, 301, 19, 77]


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_stored_as_it_is(model_type: str, dtype: str, tmp_path: Path) -> None:
    tensors = write_folder(tmp_path, config_of(model_type), dtype=dtype)
    with HFModel(tmp_path, "none") as model:
        assert {info.name for info in model.tensors.values()} == set(tensors)
        for role, info in model.tensors.items():
            values = tensors[info.name]
            assert info.shape == values.shape
            assert info.num_bytes == model.data(role).nbytes
            if values.ndim == 1:
                assert info.type is TensorType.F32
                expected = values + np.float32(model_type == "gemma3_text")
                np.testing.assert_array_equal(model.data(role).view(np.float32), expected)
            else:
                assert info.type is TensorType[dtype]
                assert model.data(role).tobytes() == encoded(values, dtype)


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize(("quantization", "of_layers"), [("q8", TensorType.Q8_0), ("q4", TensorType.Q4_1)])
def test_quantised(quantization: Any, of_layers: TensorType, dtype: str, tmp_path: Path) -> None:
    tensors = write_folder(tmp_path, config_of(vocab_size=3000), dtype=dtype, num_shards=2)
    with HFModel(tmp_path, quantization) as model:
        for role, info in model.tensors.items():
            if len(info.shape) == 1:
                continue
            expected = TensorType.Q8_0 if role.layer < 0 else of_layers
            make = {TensorType.Q8_0: to_q8_0, TensorType.Q4_1: to_q4_1}[expected]
            assert info.type is expected
            assert info.num_bytes == model.data(role).nbytes
            np.testing.assert_array_equal(model.data(role), make(tensors[info.name]).reshape(-1))
            model.release(role)
            np.testing.assert_array_equal(model.data(role), make(tensors[info.name]).reshape(-1))


def test_rows_that_are_no_whole_number_of_blocks_stay(tmp_path: Path) -> None:
    write_folder(tmp_path, config_of(intermediate_size=80))
    with HFModel(tmp_path, "q4") as model:
        assert model.tensors[TensorRole("down", 0)].type is TensorType.BF16
        assert model.tensors[TensorRole("gate", 0)].type is TensorType.Q4_1


def test_a_file_that_aligns_nothing(tmp_path: Path) -> None:
    tensors = write_folder(tmp_path, dtype="F32")
    path = tmp_path / "model.safetensors"
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    path.write_bytes((length + 1).to_bytes(8, "little") + raw[8 : 8 + length] + b" " + raw[8 + length :])
    for quantization in ("none", "q8"):
        with HFModel(tmp_path, quantization) as model:
            data = model.data(TensorRole("q", 1))
            expected = tensors["model.layers.1.self_attn.q_proj.weight"]
            assert quantization == "q8" or data.ctypes.data % 4 == 0
            assert data.tobytes() == (expected if quantization == "none" else to_q8_0(expected)).tobytes()
            norm = model.data(TensorRole("output_norm")).view(np.float32)
            np.testing.assert_array_equal(norm, tensors["model.norm.weight"])


def test_views_outlive_the_model(tmp_path: Path) -> None:
    tensors = write_folder(tmp_path)
    with HFModel(tmp_path, "none") as model:
        view = model.data(TensorRole("embedding"))
    assert view.tobytes() == encoded(tensors["model.embed_tokens.weight"], "BF16")
    with pytest.raises(ValueError, match="is closed"):
        model.data(TensorRole("embedding"))


def test_heads(tmp_path: Path) -> None:
    head = TensorRole("head")
    write_folder(tmp_path / "own")
    write_folder(tmp_path / "tied", config_of(tie_word_embeddings=True))
    write_folder(tmp_path / "stored", config_of(tie_word_embeddings=True), random_tensors(config_of()))
    for name, is_tied in (("own", False), ("tied", True), ("stored", False)):
        with HFModel(tmp_path / name, "none") as model:
            assert (model.config.is_head_tied, head in model.tensors) == (is_tied, not is_tied)


def test_frequencies_that_old_files_store(tmp_path: Path) -> None:
    tensors = random_tensors(config_of())
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(8, np.float32)
    write_folder(tmp_path, tensors=tensors)
    with HFModel(tmp_path, "none") as model:
        assert len(model.tensors) == len(tensors) - 1


def without(name: str) -> dict[str, Floats]:
    return {key: values for key, values in random_tensors(config_of()).items() if key != name}


def with_one(name: str, shape: tuple[int, ...]) -> dict[str, Floats]:
    return {**random_tensors(config_of()), name: np.zeros(shape, np.float32)}


UP, NORM, HEAD = "model.layers.1.mlp.up_proj.weight", "model.norm.weight", "lm_head.weight"


@pytest.mark.parametrize(
    ("tensors", "kind", "expected"),
    [
        (without(UP), ModelFormatError, f"tensor '{UP}' is missing"),
        (without(HEAD), ModelFormatError, f"tensor '{HEAD}' is missing"),
        (with_one(UP, (64, 96)), ModelFormatError, f"tensor '{UP}' has shape (64, 96), expected (96, 64)"),
        (with_one(NORM, (63,)), ModelFormatError, f"tensor '{NORM}' has shape (63,), expected (64,)"),
        (with_one(NORM, ()), ModelFormatError, f"tensor '{NORM}' has shape (), expected (64,)"),
        (
            with_one("model.layers.0.self_attn.q_proj.bias", (64,)),
            UnsupportedModelError,
            "tensor 'model.layers.0.self_attn.q_proj.bias' is part of nothing in a llama",
        ),
        (with_one("model.layers.2.mlp.up_proj.weight", (96, 64)), UnsupportedModelError, "is part of nothing"),
    ],
)
def test_tensors_that_do_not_fit(
    tensors: dict[str, Floats], kind: type[PacelineError], expected: str, tmp_path: Path
) -> None:
    write_folder(tmp_path, tensors=tensors)
    with pytest.raises(kind) as caught:
        HFModel(tmp_path, "q8")
    assert expected in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_dtype_that_cannot_be_run(tmp_path: Path) -> None:
    write_folder(tmp_path, dtype="BF16")
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"dtype":"BF16"', b'"dtype":"I16" ', 1))
    with pytest.raises(UnsupportedModelError, match="has dtype I16, only F32, F16 and BF16 are supported"):
        HFModel(tmp_path, "q8")


def test_what_is_no_model_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="is not a folder"):
        HFModel(tmp_path / "nowhere", "q8")
    with pytest.raises(ModelNotFoundError, match=r"has no config\.json; give a folder that holds a model"):
        HFModel(tmp_path, "q8")
    (tmp_path / "model.Q8_0.gguf").touch()
    with pytest.raises(ModelNotFoundError, match=r"has no config\.json; give one of its files, such as 'model\.Q8_0"):
        HFModel(tmp_path, "q8")
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(UnsupportedModelError, match="is a LoRA adapter"):
        HFModel(tmp_path, "q8")


def test_unknown_quantisations(tmp_path: Path) -> None:
    write_folder(tmp_path)
    with pytest.raises(UsageError, match="quantization is 'q5'; expected one of q8, q4, none"):
        HFModel(tmp_path, "q5")  # type: ignore[arg-type]


def test_a_damaged_shard_closes_the_others(tmp_path: Path) -> None:
    write_folder(tmp_path, num_shards=2)
    path = tmp_path / "model-00002-of-00002.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFormatError, match=r"00002-of-00002\.safetensors: the tensors end at byte"):
        HFModel(tmp_path, "q8")


GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
GEMMA_NAMES = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def as_reference(tensors: dict[str, Floats], config: ModelConfig) -> dict[str, Floats]:
    """The tensors as the reference wants them: by GGUF's names, with the factors of Gemma's norms."""
    is_gemma = config.architecture == "gemma3"
    names = GGUF_NAMES | GEMMA_NAMES if is_gemma else GGUF_NAMES
    result = {}
    for name, values in tensors.items():
        stem, _, kind = name.rpartition(".")
        layer, _, part = stem.removeprefix("model.layers.").partition(".")
        prefix = f"blk.{layer}." if stem.startswith("model.layers.") else ""
        new_name = f"{prefix}{names[part if prefix else stem]}.{kind}"
        result[new_name] = values + np.float32(1) if is_gemma and new_name.endswith("norm.weight") else values
    return result


@pytest.mark.parametrize("model_type", MODEL_TYPES)
@pytest.mark.parametrize(
    ("quantization", "dtype", "tolerance"), [("none", "F32", 2e-3), ("none", "F16", 2e-3), ("q8", "BF16", 6e-2)]
)
def test_the_forward_is_that_of_the_numbers(
    quantization: Any, dtype: str, tolerance: float, model_type: str, tmp_path: Path
) -> None:
    """Relative to the largest logit. With `none` only keys and values are rounded; `q8` rounds weights and inputs."""
    tensors = write_folder(tmp_path, config_of(model_type), dtype=dtype)
    with HFModel(tmp_path, quantization) as model:
        runtime = NativeRuntime.load(model, NativeOptions(num_threads=2))
    segment = Segment(0, 0, (3, 1), tuple(TOKENS), logits_rows=tuple(range(len(TOKENS))))
    found = runtime.forward([segment]).logits[:, : runtime.info.vocab_size]
    expected, _ = numpy_decoder.forward(runtime.config, as_reference(tensors, runtime.config), TOKENS)
    assert np.abs(found - expected).max() / np.abs(expected).max() < tolerance
