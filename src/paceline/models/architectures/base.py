"""The contract of an architecture: its tensors by role, and how its numbers are read from each kind of file.

Roles without a layer: `embedding`, `head`, `output_norm`. Of a layer, matrices `q`, `k`, `v`, `o`, `gate`, `up`,
`down`; vectors `attn_norm`, `ffn_norm` and, where the configuration has them, `q_bias`, `k_bias`, `v_bias`, `q_norm`,
`k_norm`, `post_attn_norm`, `post_ffn_norm`.
"""

from collections.abc import Mapping

from paceline.models.base import ModelConfig, TensorRole

Shape = tuple[int, ...]


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
