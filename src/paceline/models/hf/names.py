"""What model folders call the tensors of each role."""

import re

from paceline.models.base import ModelConfig, TensorRole

# {} stands for the layer.
_NAMES = {
    "embedding": "model.embed_tokens.weight",
    "head": "lm_head.weight",
    "output_norm": "model.norm.weight",
    "attn_norm": "model.layers.{}.input_layernorm.weight",
    "q": "model.layers.{}.self_attn.q_proj.weight",
    "k": "model.layers.{}.self_attn.k_proj.weight",
    "v": "model.layers.{}.self_attn.v_proj.weight",
    "o": "model.layers.{}.self_attn.o_proj.weight",
    "q_bias": "model.layers.{}.self_attn.q_proj.bias",
    "k_bias": "model.layers.{}.self_attn.k_proj.bias",
    "v_bias": "model.layers.{}.self_attn.v_proj.bias",
    "q_norm": "model.layers.{}.self_attn.q_norm.weight",
    "k_norm": "model.layers.{}.self_attn.k_norm.weight",
    "ffn_norm": "model.layers.{}.post_attention_layernorm.weight",
    "gate": "model.layers.{}.mlp.gate_proj.weight",
    "up": "model.layers.{}.mlp.up_proj.weight",
    "down": "model.layers.{}.mlp.down_proj.weight",
}
_POST_NORM_NAMES = {  # where sublayers have a norm on either side
    "post_attn_norm": "model.layers.{}.post_attention_layernorm.weight",
    "ffn_norm": "model.layers.{}.pre_feedforward_layernorm.weight",
    "post_ffn_norm": "model.layers.{}.post_feedforward_layernorm.weight",
}
_COMPUTED = re.compile(r".*\.rotary_emb\.inv_freq")  # old files store what config.json tells already


def tensor_name(role: TensorRole, config: ModelConfig) -> str:
    names = _NAMES | _POST_NORM_NAMES if config.has_post_norms else _NAMES
    return names[role.name].format(role.layer)


def is_computed(name: str) -> bool:
    """True for a tensor that need not be read."""
    return _COMPUTED.fullmatch(name) is not None
