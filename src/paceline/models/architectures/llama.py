"""Llama-family files: the numbers of the architecture, checked against each other and against every tensor's shape.

What this module lets through, a runtime can load without a second look.
"""

import math

from paceline.errors import ModelFormatError, UnsupportedModelError
from paceline.models.architectures.base import role_shapes
from paceline.models.architectures.rope import plain_rope
from paceline.models.base import LayerConfig, ModelConfig, TensorRole, TensorType
from paceline.models.gguf.file import GGUFFile
from paceline.models.quoting import quoted

_ARCHITECTURE = "llama"
_MAX_SIZE = 1 << 24  # of any one number: far above every real model, far below what overflows downstream
# The tensors' names in the file, by role; {} stands for the layer.
_NAMES = {
    "embedding": "token_embd.weight",
    "head": "output.weight",
    "output_norm": "output_norm.weight",
    "attn_norm": "blk.{}.attn_norm.weight",
    "q": "blk.{}.attn_q.weight",
    "k": "blk.{}.attn_k.weight",
    "v": "blk.{}.attn_v.weight",
    "o": "blk.{}.attn_output.weight",
    "ffn_norm": "blk.{}.ffn_norm.weight",
    "gate": "blk.{}.ffn_gate.weight",
    "up": "blk.{}.ffn_up.weight",
    "down": "blk.{}.ffn_down.weight",
}


def tensor_name(role: TensorRole) -> str:
    """What GGUF files call the tensor of a role."""
    return _NAMES[role.name].format(role.layer)


def read_config(file: GGUFFile) -> ModelConfig:
    """Read and check the configuration.

    Raises `UnsupportedModelError` for what this version cannot run and `ModelFormatError` for numbers that contradict
    each other or the tensors.
    """
    _check_features(file)
    config = _read_numbers(file)
    _check_numbers(file, config)
    _check_runnable(file, config)
    _check_tensors(file, config)
    return config


def _unsupported(file: GGUFFile, what: str) -> UnsupportedModelError:
    return UnsupportedModelError(f"{file.path}: {what}; choose another model")


def _malformed(file: GGUFFile, what: str) -> ModelFormatError:
    return ModelFormatError(f"{file.path}: {what}; fetch or convert it again, or choose another model")


def _check_features(file: GGUFFile) -> None:
    metadata = file.metadata
    architecture = metadata.string("general.architecture")
    if architecture != _ARCHITECTURE:
        raise _unsupported(file, f"architecture {quoted(architecture)} is not supported, only {_ARCHITECTURE!r} is")
    if metadata.integer("split.count", 1) > 1:
        raise _unsupported(file, "this is one part of a split model, only whole files are read")
    if metadata.integer("llama.expert_count", 0) > 0:
        raise _unsupported(file, "mixtures of experts (llama.expert_count) are not supported")
    scaling = metadata.string("llama.rope.scaling.type", "none")
    factor = metadata.number("llama.rope.scaling.factor", 1.0)
    linear = metadata.number("llama.rope.scale_linear", 1.0)
    if scaling != "none" or factor not in (0.0, 1.0) or linear != 1.0 or "rope_freqs.weight" in file.tensors:
        raise _unsupported(file, f"rope scaling ({quoted(scaling)}) is not supported")
    if metadata.integer("llama.attention.sliding_window", 0) > 0:
        raise _unsupported(file, "sliding-window attention is not supported")
    biases = [name for name in file.tensors if name.endswith(".bias")]
    if biases:
        raise _unsupported(file, f"bias tensors ({quoted(biases[0])}) are not supported")


def _read_numbers(file: GGUFFile) -> ModelConfig:
    metadata = file.metadata

    def size(key: str, default: int | None = None) -> int:
        value = metadata.integer(f"llama.{key}", default)
        if not 1 <= value <= _MAX_SIZE:
            raise _malformed(file, f"llama.{key} is {value}, expected 1 to {_MAX_SIZE}")
        return value

    hidden_size, num_heads = size("embedding_length"), size("attention.head_count")
    head_dim = size("attention.key_length", max(hidden_size // num_heads, 1))
    if size("attention.value_length", head_dim) != head_dim:
        raise _unsupported(file, "value heads of another width than key heads are not supported")
    embedding, head = tensor_name(TensorRole("embedding")), tensor_name(TensorRole("head"))
    if embedding not in file.tensors:
        raise _malformed(file, f"tensor {embedding!r} is missing")
    num_layers, rope_dim = size("block_count"), size("rope.dimension_count", head_dim)
    theta = metadata.number("llama.rope.freq_base", 10000.0)
    if num_layers > len(file.tensors):  # before a loop over a count that the file only claims
        raise _malformed(file, f"{num_layers} layers, but only {len(file.tensors)} tensors")
    if rope_dim % 2 or rope_dim > head_dim:
        raise _malformed(file, f"rope.dimension_count {rope_dim} is odd or above the head width {head_dim}")
    if not (math.isfinite(theta) and theta > 0):
        raise _malformed(file, f"rope.freq_base {theta} is not a positive number")
    return ModelConfig(
        architecture=_ARCHITECTURE,
        num_layers=num_layers,
        hidden_size=hidden_size,
        intermediate_size=size("feed_forward_length"),
        num_heads=num_heads,
        num_kv_heads=size("attention.head_count_kv", num_heads),
        head_dim=head_dim,
        vocab_size=size("vocab_size", file.tensors[embedding].shape[0]),
        context_length=size("context_length"),
        rms_norm_eps=metadata.number("llama.attention.layer_norm_rms_epsilon"),
        is_head_tied=head not in file.tensors,
        rope_dim=rope_dim,
        is_rope_split=False,
        ropes=(plain_rope(theta, rope_dim),),
        layers=(LayerConfig(),) * num_layers,
        attention_scale=head_dim**-0.5,
    )


def _check_numbers(file: GGUFFile, config: ModelConfig) -> None:
    heads, kv_heads, head_dim = config.num_heads, config.num_kv_heads, config.head_dim
    has_key_length = "llama.attention.key_length" in file.metadata
    num_tokens = len(file.metadata.strings("tokenizer.ggml.tokens"))
    checks = {
        f"{heads} heads do not divide the hidden size {config.hidden_size}": (
            has_key_length or config.hidden_size % heads == 0
        ),
        f"{kv_heads} key/value heads do not divide {heads} heads": heads % kv_heads == 0,
        f"the head width {head_dim} is odd": head_dim % 2 == 0,
        f"layer_norm_rms_epsilon {config.rms_norm_eps} is not between 0 and 1": 0 <= config.rms_norm_eps < 1,
        f"the vocabulary has {num_tokens} tokens for {config.vocab_size} embedding rows": (
            1 <= num_tokens <= config.vocab_size
        ),
    }
    for problem, is_sound in checks.items():
        if not is_sound:
            raise _malformed(file, problem)


def _check_runnable(file: GGUFFile, config: ModelConfig) -> None:
    """Sound, but not for these kernels: they take channels and intermediate values 8 at a time."""
    for name, value in (("head width", config.head_dim), ("intermediate size", config.intermediate_size)):
        if value % 8:
            raise _unsupported(file, f"a {name} of {value} is not supported, only multiples of 8 are")


def _check_tensors(file: GGUFFile, config: ModelConfig) -> None:
    for role, shape in role_shapes(config).items():
        _check_tensor(file, tensor_name(role), shape)


def _check_tensor(file: GGUFFile, name: str, shape: tuple[int, ...]) -> None:
    info = file.tensors.get(name)
    if info is None:
        raise _malformed(file, f"tensor {name!r} is missing")
    if info.shape != shape:
        raise _malformed(file, f"tensor {name!r} has shape {info.shape}, expected {shape}")
    if len(shape) == 1 and info.type is not TensorType.F32:
        raise _unsupported(file, f"norm {name!r} has type {info.type.name}, only F32 is supported")
