"""The numbers of a model folder: config.json as a `ModelConfig`, checked against itself."""

from typing import Literal

from paceline.models.base import LayerConfig, ModelConfig, Rope
from paceline.models.hf.refusals import MODEL_TYPES, check_kind
from paceline.models.hf.ropes import read_context_length, read_gemma3_ropes, read_rope
from paceline.models.hf.settings import Settings
from paceline.models.quoting import quoted

_MAX_SIZE = 1 << 24  # of any one number: far above every real model, far below what overflows downstream
# What transformers takes where the file says nothing.
_HEAD_DIMS = {"qwen3": 128, "gemma3_text": 256}
_WINDOWS = {"mistral": 4096, "qwen2": 4096, "qwen3": 4096, "gemma3_text": 4096}
_MISTRAL_KV_HEADS = 8
_MAX_WINDOW_LAYERS = 28
_GEMMA3_PATTERN, _GEMMA3_SCALAR = 6, 256
_ACTIVATIONS: dict[str, Literal["silu", "gelu_tanh"]] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
}


def read_config(settings: Settings, num_tensors: int) -> ModelConfig:
    """Read and check the configuration of a model with so many tensors.

    Raises `UnsupportedModelError` for what this version cannot run and `ModelFormatError` for numbers that contradict
    each other.
    """
    model_type = check_kind(settings)
    architecture = MODEL_TYPES[model_type]
    is_gemma = architecture.name == "gemma3"
    num_layers = _size(settings, "num_hidden_layers")
    if num_layers > num_tensors:  # before a loop over a count that the file only claims
        raise settings.malformed(f"{num_layers} layers, but only {num_tensors} tensors")
    hidden_size, num_heads = _size(settings, "hidden_size"), _size(settings, "num_attention_heads")
    head_dim = _read_head_dim(settings, model_type, hidden_size, num_heads)
    windows = _read_windows(settings, model_type, num_layers)
    config = ModelConfig(
        architecture=architecture.name,
        num_layers=num_layers,
        hidden_size=hidden_size,
        intermediate_size=_size(settings, "intermediate_size"),
        num_heads=num_heads,
        num_kv_heads=_size(
            settings, "num_key_value_heads", _MISTRAL_KV_HEADS if model_type == "mistral" else num_heads
        ),
        head_dim=head_dim,
        vocab_size=_size(settings, "vocab_size"),
        context_length=_in_range(settings, "max_position_embeddings", read_context_length(settings)),
        rms_norm_eps=settings.number("rms_norm_eps"),
        is_head_tied=settings.flag("tie_word_embeddings", is_gemma),
        rope_dim=head_dim,
        is_rope_split=True,
        ropes=_read_ropes(settings, head_dim, is_gemma=is_gemma),
        layers=tuple(LayerConfig(window, 1 if is_gemma and window else 0) for window in windows),
        attention_scale=_attention_scale(settings, head_dim, is_gemma=is_gemma),
        embedding_scale=hidden_size**0.5 if architecture.has_embedding_scale else 1.0,
        activation=_read_activation(settings, is_gemma=is_gemma),
        has_qkv_bias=architecture.has_qkv_bias,
        has_qk_norm=architecture.has_qk_norm,
        has_post_norms=architecture.has_post_norms,
    )
    _check_numbers(settings, config)
    return config


def _read_head_dim(settings: Settings, model_type: str, hidden_size: int, num_heads: int) -> int:
    if "head_dim" not in settings and model_type not in _HEAD_DIMS and hidden_size % num_heads:
        raise settings.malformed(f"{num_heads} heads do not divide the hidden size {hidden_size}")
    head_dim = _size(settings, "head_dim", _HEAD_DIMS.get(model_type, hidden_size // num_heads))
    if head_dim % 2:
        raise settings.malformed(f"the head width {head_dim} is odd")
    return head_dim


def _size(settings: Settings, key: str, default: int | None = None) -> int:
    return _in_range(settings, key, settings.integer(key, default))


def _in_range(settings: Settings, key: str, value: int) -> int:
    if not 1 <= value <= _MAX_SIZE:
        raise settings.malformed(f"{key} is {value}, expected 1 to {_MAX_SIZE}")
    return value


def _read_ropes(settings: Settings, head_dim: int, *, is_gemma: bool) -> tuple[Rope, ...]:
    return read_gemma3_ropes(settings, head_dim) if is_gemma else (read_rope(settings, head_dim),)


def _attention_scale(settings: Settings, head_dim: int, *, is_gemma: bool) -> float:
    scalar = settings.number("query_pre_attn_scalar", _GEMMA3_SCALAR) if is_gemma else head_dim
    if not 1 <= scalar <= _MAX_SIZE:
        raise settings.malformed(f"query_pre_attn_scalar is {scalar}, expected a number from 1 to {_MAX_SIZE}")
    return float(scalar**-0.5)


def _read_activation(settings: Settings, *, is_gemma: bool) -> Literal["silu", "gelu_tanh"]:
    key, default = ("hidden_activation", "gelu_pytorch_tanh") if is_gemma else ("hidden_act", "silu")
    name = settings.string(key, default)
    if name not in _ACTIVATIONS:
        raise settings.unsupported(f"activation {quoted(name)} is not supported, only {', '.join(_ACTIVATIONS)} are")
    return _ACTIVATIONS[name]


def _read_windows(settings: Settings, model_type: str, num_layers: int) -> list[int | None]:
    """Of each layer, how many positions it sees; None: all."""
    window = _read_window(settings, model_type)
    is_sliding = _sliding_layers(settings, model_type, num_layers, has_window=window is not None)
    if window is None and any(is_sliding):
        raise settings.malformed("layer_types has sliding_attention, but there is no sliding_window")
    return [window if sliding else None for sliding in is_sliding]


def _read_window(settings: Settings, model_type: str) -> int | None:
    if model_type not in _WINDOWS or (model_type.startswith("qwen") and not settings.flag("use_sliding_window", False)):
        return None
    if settings.mentions("sliding_window") and "sliding_window" not in settings:  # null: there is none
        return None
    return _size(settings, "sliding_window", _WINDOWS[model_type])


def _sliding_layers(settings: Settings, model_type: str, num_layers: int, *, has_window: bool) -> list[bool]:
    if model_type != "llama" and "layer_types" in settings:
        return _listed_layers(settings, num_layers)
    layers = range(num_layers)
    match model_type:
        case "mistral":
            return [has_window for _ in layers]
        case "qwen2" | "qwen3":
            first = settings.integer("max_window_layers", _MAX_WINDOW_LAYERS)
            return [has_window and layer >= first for layer in layers]
        case "gemma3_text":
            pattern = _size(settings, "sliding_window_pattern", _GEMMA3_PATTERN)
            return [(layer + 1) % pattern != 0 for layer in layers]
        case _:
            return [False for _ in layers]


def _listed_layers(settings: Settings, num_layers: int) -> list[bool]:
    kinds = settings.strings("layer_types")
    if len(kinds) != num_layers:
        raise settings.malformed(f"layer_types has {len(kinds)} entries for {num_layers} layers")
    for kind in kinds:
        if kind not in ("full_attention", "sliding_attention"):
            raise settings.unsupported(f"layers of the type {quoted(kind)} are not supported")
    return [kind == "sliding_attention" for kind in kinds]


def _check_numbers(settings: Settings, config: ModelConfig) -> None:
    heads, kv_heads = config.num_heads, config.num_kv_heads
    if heads % kv_heads:
        raise settings.malformed(f"{kv_heads} key/value heads do not divide {heads} heads")
    if not 0 <= config.rms_norm_eps < 1:
        raise settings.malformed(f"rms_norm_eps {config.rms_norm_eps} is not between 0 and 1")
    for name, value in (("head width", config.head_dim), ("intermediate size", config.intermediate_size)):
        if value % 8:  # kernels take channels and intermediate values 8 at a time
            raise settings.unsupported(f"{name} {value} is not supported, only multiples of 8 are")
