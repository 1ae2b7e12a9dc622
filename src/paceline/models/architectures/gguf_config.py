"""The configuration of a GGUF file: its numbers, checked against each other and against every tensor's shape.

What this module lets through, a runtime can load without a second look.
"""

from dataclasses import dataclass

from paceline.models.architectures.base import Architecture, role_shapes
from paceline.models.architectures.gguf_rope import ROPE_DIVISORS, read_ropes
from paceline.models.architectures.gguf_settings import GGUFSettings
from paceline.models.architectures.registry import architecture_named, refusal
from paceline.models.base import LayerConfig, ModelConfig, TensorRole
from paceline.models.gguf.file import GGUFFile
from paceline.models.quoting import quoted

_GEMMA3_PERIOD = 6  # of alternating layers, where the file does not say
_GEMMA3_27B_LAYERS = 62
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
    "q_bias": "blk.{}.attn_q.bias",
    "k_bias": "blk.{}.attn_k.bias",
    "v_bias": "blk.{}.attn_v.bias",
    "q_norm": "blk.{}.attn_q_norm.weight",
    "k_norm": "blk.{}.attn_k_norm.weight",
    "post_attn_norm": "blk.{}.post_attention_norm.weight",
    "ffn_norm": "blk.{}.ffn_norm.weight",
    "gate": "blk.{}.ffn_gate.weight",
    "up": "blk.{}.ffn_up.weight",
    "down": "blk.{}.ffn_down.weight",
    "post_ffn_norm": "blk.{}.post_ffw_norm.weight",
}
# What changes the numbers and is computed by no architecture here; values that mean "absent".
_UNSUPPORTED_KEYS = {
    "expert_count": ("mixtures of experts", 0),
    "pooling_type": ("embedding models", 0),
    "attention.causal": ("attention without a causal mask", True),
    "attention.scale": ("an attention scale of its own", 0),
    "attention.temperature_scale": ("attention temperature by position", 0),
    "attention.clamp_kqv": ("clamped projections", 0),
    "attention.max_alibi_bias": ("ALiBi", 0),
    "attn_logit_softcapping": ("softcapping of scores", 0),
    "final_logit_softcapping": ("softcapping of logits", 0),
    "logit_scale": ("scaled logits", 0),
    "residual_scale": ("scaled residuals", 0),
    "embedding_scale": ("scaled embeddings", 0),
}


def tensor_name(role: TensorRole) -> str:
    """What GGUF files call the tensor of a role."""
    return _NAMES[role.name].format(role.layer)


def read_config(file: GGUFFile) -> ModelConfig:
    """Read and check the configuration.

    Raises `UnsupportedModelError` for what this version cannot run and `ModelFormatError` for numbers that contradict
    each other or the tensors.
    """
    settings = GGUFSettings(file, file.metadata.string("general.architecture"))
    architecture = _check_features(settings)
    sizes = _read_sizes(settings)
    _check_sizes(settings, sizes)
    config = _make_config(settings, architecture, sizes)
    _check_runnable(settings, config)
    _check_tensors(settings, config)
    return config


@dataclass(frozen=True, slots=True)
class _Sizes:
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope_dim: int
    vocab_size: int
    context_length: int
    rms_norm_eps: float


def _check_features(settings: GGUFSettings) -> Architecture:
    metadata = settings.file.metadata
    kind = metadata.string("general.type", "model")
    if kind == "adapter":
        raise settings.unsupported("this is a LoRA adapter, not a model: adapters are not supported")
    if kind != "model":
        raise settings.unsupported(f"this file is of type {quoted(kind)}, not a model")
    architecture = architecture_named(settings.prefix)
    if architecture is None:
        raise settings.unsupported(refusal(settings.prefix))
    if metadata.integer("split.count", 1) > 1:
        raise settings.unsupported("this is one part of a split model, only whole files are read")
    for key, (feature, absent) in _UNSUPPORTED_KEYS.items():
        value = metadata.get(f"{settings.prefix}.{key}", absent)
        if not isinstance(value, bool | int | float) or value != absent:
            raise settings.unsupported(f"{feature} ({settings.prefix}.{key}) is not supported")
    return architecture


def _read_sizes(settings: GGUFSettings) -> _Sizes:
    size, tensors = settings.size, settings.file.tensors
    hidden_size, num_heads = size("embedding_length"), size("attention.head_count")
    head_dim = size("attention.key_length", max(hidden_size // num_heads, 1))
    if size("attention.value_length", head_dim) != head_dim:
        raise settings.unsupported("value heads of another width than key heads are not supported")
    embedding = tensor_name(TensorRole("embedding"))
    if embedding not in tensors:
        raise settings.malformed(f"tensor {embedding!r} is missing")
    return _Sizes(
        num_layers=size("block_count"),
        hidden_size=hidden_size,
        intermediate_size=size("feed_forward_length"),
        num_heads=num_heads,
        num_kv_heads=size("attention.head_count_kv", num_heads),
        head_dim=head_dim,
        rope_dim=size("rope.dimension_count", head_dim),
        vocab_size=size("vocab_size", tensors[embedding].shape[0]),
        context_length=size("context_length"),
        rms_norm_eps=settings.number("attention.layer_norm_rms_epsilon"),
    )


def _check_sizes(settings: GGUFSettings, sizes: _Sizes) -> None:
    heads, kv_heads, head_dim, rope_dim = sizes.num_heads, sizes.num_kv_heads, sizes.head_dim, sizes.rope_dim
    num_tensors, num_tokens = len(settings.file.tensors), len(settings.file.metadata.strings("tokenizer.ggml.tokens"))
    checks = {
        # Before any loop over a count that the file only claims.
        f"{sizes.num_layers} layers, but only {num_tensors} tensors": sizes.num_layers <= num_tensors,
        f"{heads} heads do not divide the hidden size {sizes.hidden_size}": (
            settings.has("attention.key_length") or sizes.hidden_size % heads == 0
        ),
        f"{kv_heads} key/value heads do not divide {heads} heads": heads % kv_heads == 0,
        f"the head width {head_dim} is odd": head_dim % 2 == 0,
        f"rope.dimension_count {rope_dim} is odd or above the head width {head_dim}": (
            rope_dim % 2 == 0 and rope_dim <= head_dim
        ),
        f"layer_norm_rms_epsilon {sizes.rms_norm_eps} is not between 0 and 1": 0 <= sizes.rms_norm_eps < 1,
        f"the vocabulary has {num_tokens} tokens for {sizes.vocab_size} embedding rows": (
            1 <= num_tokens <= sizes.vocab_size
        ),
    }
    for problem, is_sound in checks.items():
        if not is_sound:
            raise settings.malformed(problem)


def _make_config(settings: GGUFSettings, architecture: Architecture, sizes: _Sizes) -> ModelConfig:
    return ModelConfig(
        architecture=architecture.name,
        num_layers=sizes.num_layers,
        hidden_size=sizes.hidden_size,
        intermediate_size=sizes.intermediate_size,
        num_heads=sizes.num_heads,
        num_kv_heads=sizes.num_kv_heads,
        head_dim=sizes.head_dim,
        vocab_size=sizes.vocab_size,
        context_length=sizes.context_length,
        rms_norm_eps=sizes.rms_norm_eps,
        is_head_tied=tensor_name(TensorRole("head")) not in settings.file.tensors,
        rope_dim=sizes.rope_dim,
        is_rope_split=architecture.is_rope_split,
        ropes=read_ropes(settings, architecture, sizes.rope_dim, sizes.context_length),
        layers=_read_layers(settings, architecture, sizes.num_layers),
        attention_scale=_attention_scale(architecture, sizes),
        embedding_scale=sizes.hidden_size**0.5 if architecture.has_embedding_scale else 1.0,
        activation=architecture.activation,
        has_qkv_bias=architecture.has_qkv_bias,
        has_qk_norm=architecture.has_qk_norm,
        has_post_norms=architecture.has_post_norms,
    )


def _read_layers(settings: GGUFSettings, architecture: Architecture, num_layers: int) -> tuple[LayerConfig, ...]:
    key = "attention.sliding_window"
    if architecture.windows == "alternating":
        period = settings.size("attention.sliding_window_pattern", _GEMMA3_PERIOD)
        local = LayerConfig(settings.size(key), rope=1)
        return tuple(LayerConfig() if (layer + 1) % period == 0 else local for layer in range(num_layers))
    if settings.count(key) == 0:
        return (LayerConfig(),) * num_layers
    if architecture.windows == "none":
        raise settings.unsupported(f"sliding-window attention is not supported for {architecture.name!r}")
    return (LayerConfig(settings.size(key)),) * num_layers  # Mistral; llama.cpp ignores the key in such files


def _attention_scale(architecture: Architecture, sizes: _Sizes) -> float:
    if architecture.name == "gemma3" and sizes.num_layers == _GEMMA3_27B_LAYERS:
        width = sizes.hidden_size / sizes.num_heads  # the one size where this is not the head's; files do not say so
        return float(width**-0.5)
    return float(sizes.head_dim**-0.5)


def _check_runnable(settings: GGUFSettings, config: ModelConfig) -> None:
    """Sound, but not for these kernels: they take channels and intermediate values 8 at a time."""
    for name, value in (("head width", config.head_dim), ("intermediate size", config.intermediate_size)):
        if value % 8:
            raise settings.unsupported(f"a {name} of {value} is not supported, only multiples of 8 are")


def _check_tensors(settings: GGUFSettings, config: ModelConfig) -> None:
    names = {ROPE_DIVISORS}
    for role, shape in role_shapes(config).items():
        name = tensor_name(role)
        names.add(name)
        info = settings.file.tensors.get(name)
        if info is None:
            raise settings.malformed(f"tensor {name!r} is missing")
        if info.shape != shape:
            raise settings.malformed(f"tensor {name!r} has shape {info.shape}, expected {shape}")
        if len(shape) == 1 and not info.type.is_float:
            raise settings.unsupported(
                f"vector {name!r} has type {info.type.name}, only F32, F16 and BF16 are supported"
            )
    for name in settings.file.tensors:
        if name not in names:  # it would change the numbers, and is computed by nothing here
            raise settings.unsupported(f"tensor {quoted(name)} has no place in architecture {config.architecture!r}")
