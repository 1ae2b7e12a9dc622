"""The contract of an architecture: what it has beside the common decoder, and its tensors by role.

Roles without a layer: `embedding`, `head`, `output_norm`. Of a layer, matrices `q`, `k`, `v`, `o`, `gate`, `up`,
`down`; vectors `attn_norm`, `ffn_norm` and, where the configuration has them, `q_bias`, `k_bias`, `v_bias`, `q_norm`,
`k_norm`, `post_attn_norm`, `post_ffn_norm`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from paceline.models.base import ModelConfig, TensorRole

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Architecture:
    """What sets an architecture apart from plain Llama; the fields of the same names are those of `ModelConfig`."""

    name: str
    """As GGUF files have it."""
    is_rope_split: bool = True
    """In GGUF files. Hugging Face folders hold the split order for all of these."""
    has_qkv_bias: bool = False
    has_qk_norm: bool = False
    has_post_norms: bool = False
    has_embedding_scale: bool = False
    """Embedding rows are multiplied by the root of the hidden size."""
    activation: Literal["silu", "gelu_tanh"] = "silu"
    windows: Literal["none", "all", "alternating"] = "none"
    """Which layers a sliding window binds. Alternating ones have rotary frequencies of their own, never stretched."""


def role_shapes(config: ModelConfig) -> dict[TensorRole, Shape]:
    """Every tensor that a model of this configuration has, with its row-major shape."""
    matrix = (config.vocab_size, config.hidden_size)
    shapes: dict[TensorRole, Shape] = {
        TensorRole("embedding"): matrix,
        TensorRole("output_norm"): (config.hidden_size,),
    }
    if not config.is_head_tied:
        shapes[TensorRole("head")] = matrix
    of_layer = layer_shapes(config)
    for layer in range(config.num_layers):
        shapes |= {TensorRole(name, layer): shape for name, shape in of_layer.items()}
    return shapes


def layer_shapes(config: ModelConfig) -> Mapping[str, Shape]:
    """The tensors of one layer by the name of their role."""
    hidden, intermediate = config.hidden_size, config.intermediate_size
    query_size, kv_size = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    shapes: dict[str, Shape] = {
        "attn_norm": (hidden,),
        "q": (query_size, hidden),
        "k": (kv_size, hidden),
        "v": (kv_size, hidden),
        "o": (hidden, query_size),
        "ffn_norm": (hidden,),
        "gate": (intermediate, hidden),
        "up": (intermediate, hidden),
        "down": (hidden, intermediate),
    }
    if config.has_qkv_bias:
        shapes |= {"q_bias": (query_size,), "k_bias": (kv_size,), "v_bias": (kv_size,)}
    if config.has_qk_norm:
        shapes |= {"q_norm": (config.head_dim,), "k_norm": (config.head_dim,)}
    if config.has_post_norms:
        shapes |= {"post_attn_norm": (hidden,), "post_ffn_norm": (hidden,)}
    return shapes
