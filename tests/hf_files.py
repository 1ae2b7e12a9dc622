"""Tiny random model folders, written with the `safetensors` library: small enough for every test, whole enough to run.

The reader under test never takes part in writing, so both sides are checked against an independent implementation.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from gguf_files import CHAT_TEMPLATE, SPECIAL_TOKENS, tiny_vocabulary
from numpy.typing import NDArray
from safetensors import TensorSpec, serialize_file

Floats = NDArray[np.float32]

HIDDEN, INTERMEDIATE, HEADS, KV_HEADS, HEAD_DIM, LAYERS, VOCABULARY = 64, 96, 4, 2, 16, 2, 320

SOUND: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"architectures": ["MistralForCausalLM"], "sliding_window": None},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"]},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "head_dim": HEAD_DIM},
    "gemma3_text": {
        "architectures": ["Gemma3ForCausalLM"],
        "head_dim": HEAD_DIM,
        "sliding_window": 32,
        "hidden_act": None,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": HEAD_DIM,
        "rope_theta": 1e6,
    },
}


def config_of(model_type: str = "llama", **changes: Any) -> dict[str, Any]:
    """A sound config.json of a tiny model, with keys replaced."""
    return {**SOUND, "model_type": model_type, **FAMILIES[model_type], **changes}


def shapes_of(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The tensors that transformers gives to a model of this configuration, with the sizes of this module."""
    model_type = config["model_type"]
    vocabulary, hidden, intermediate = config["vocab_size"], config["hidden_size"], config["intermediate_size"]
    head_dim = config.get("head_dim") or hidden // config["num_attention_heads"]
    query, kv = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (vocabulary, hidden),
        "model.norm.weight": (hidden,),
    }
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        shapes |= {
            f"{at}.input_layernorm.weight": (hidden,),
            f"{at}.self_attn.q_proj.weight": (query, hidden),
            f"{at}.self_attn.k_proj.weight": (kv, hidden),
            f"{at}.self_attn.v_proj.weight": (kv, hidden),
            f"{at}.self_attn.o_proj.weight": (hidden, query),
            f"{at}.post_attention_layernorm.weight": (hidden,),
            f"{at}.mlp.gate_proj.weight": (intermediate, hidden),
            f"{at}.mlp.up_proj.weight": (intermediate, hidden),
            f"{at}.mlp.down_proj.weight": (hidden, intermediate),
        }
        if model_type == "qwen2":
            shapes |= {f"{at}.self_attn.{x}_proj.bias": (query if x == "q" else kv,) for x in "qkv"}
        if model_type in ("qwen3", "gemma3_text"):
            shapes |= {f"{at}.self_attn.{x}_norm.weight": (head_dim,) for x in "qk"}
        if model_type == "gemma3_text":
            shapes |= {f"{at}.{x}_feedforward_layernorm.weight": (hidden,) for x in ("pre", "post")}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (vocabulary, hidden)
    return shapes


def random_tensors(config: dict[str, Any], dtype: str = "BF16", seed: int = 0) -> dict[str, Floats]:
    """Random weights that `dtype` can express exactly."""
    random = np.random.default_rng(seed)
    tensors = {}
    for name, shape in shapes_of(config).items():
        if len(shape) > 1:
            scale = 1.0 if "embed" in name else shape[-1] ** -0.5
            values = scale * random.standard_normal(shape)
        else:  # Gemma stores what its norms add to 1
            is_norm = name.endswith("norm.weight") and config["model_type"] != "gemma3_text"
            values = float(is_norm) + 0.1 * random.standard_normal(shape)
        tensors[name] = decoded(encoded(values.astype(np.float32), dtype), dtype).reshape(shape)
    return tensors


def encoded(values: Floats, dtype: str) -> bytes:
    """Bytes of the values in F32, F16 or BF16 (cut off, not rounded)."""
    if dtype == "BF16":
        return (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    return values.astype({"F32": "<f4", "F16": "<f2"}[dtype]).tobytes()


def decoded(raw: bytes, dtype: str) -> Floats:
    if dtype == "BF16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[dtype]).astype(np.float32)


def write_safetensors(path: Path, tensors: dict[str, Floats], dtype: str = "BF16") -> None:
    names = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
    stored = {name: np.frombuffer(encoded(values, dtype), np.uint8) for name, values in tensors.items()}
    rows = {  # `stored` outlives what points into it
        name: TensorSpec(dtype=names[dtype], shape=tensors[name].shape, data_ptr=raw.ctypes.data, data_len=raw.nbytes)
        for name, raw in stored.items()
    }
    serialize_file(rows, str(path), {"format": "pt"})


def write_folder(
    folder: Path,
    config: dict[str, Any] | None = None,
    tensors: dict[str, Floats] | None = None,
    *,
    dtype: str = "BF16",
    num_shards: int = 1,
) -> dict[str, Floats]:
    """Write a model folder without a tokenizer and return its tensors by name."""
    config = config_of() if config is None else config
    tensors = random_tensors(config, dtype) if tensors is None else tensors
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if num_shards == 1:
        write_safetensors(folder / "model.safetensors", tensors, dtype)
        return tensors
    names = list(tensors)
    weight_map = {}
    for shard in range(num_shards):
        file_name = f"model-{shard + 1:05}-of-{num_shards:05}.safetensors"
        write_safetensors(folder / file_name, {name: tensors[name] for name in names[shard::num_shards]}, dtype)
        weight_map |= dict.fromkeys(names[shard::num_shards], file_name)
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return tensors


def write_tokenizer(folder: Path, vocab_size: int = VOCABULARY, more_special: Sequence[str] = ()) -> None:
    """Add the tokenizer and the chat template that the tiny GGUF files have; more special tokens come last."""
    tokens, merges = tiny_vocabulary(vocab_size)
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, pairs))
    digits = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    words = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([digits, words])
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [tokenizers.AddedToken(name, special=True) for name in (*SPECIAL_TOKENS, *more_special)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"eos_token": SPECIAL_TOKENS[2], "bos_token": None, "chat_template": CHAT_TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
