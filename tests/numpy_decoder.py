"""The forward of every architecture in plain float32 NumPy, from the definitions: the reference for the native one.

Slow on purpose. Tensors go by their names in GGUF files.
"""

import numpy as np
from numpy.typing import NDArray

from paceline.models import ModelConfig, Rope

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


def rms_norm(x: Floats, weight: Floats, eps: float) -> Floats:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(eps)) * weight


def rotate(x: Floats, positions: Integers, rope: Rope, config: ModelConfig) -> Floats:
    """Rotate the pairs of each head; x is [rows, heads, head_dim]."""
    angles = positions[:, None] * np.array(rope.frequencies)
    cos = (rope.magnitude * np.cos(angles)).astype(np.float32)[:, None, :]
    sin = (rope.magnitude * np.sin(angles)).astype(np.float32)[:, None, :]
    pairs = np.arange(config.rope_dim // 2)
    if config.is_rope_split:
        first, second = pairs, pairs + config.rope_dim // 2
    else:
        first, second = 2 * pairs, 2 * pairs + 1
    out = x.copy()
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., first] * sin + x[..., second] * cos
    return out


def attend(q: Floats, k: Floats, v: Floats, visible: NDArray[np.bool_], scale: float) -> Floats:
    """q is [rows, heads, head_dim], k and v [rows, kv heads, head_dim]; row i sees the rows j with visible[i, j]."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("ihd,jhd->hij", q, k) * np.float32(scale)
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("hij,jhd->ihd", weights, v)


def activate(gate: Floats, config: ModelConfig) -> Floats:
    if config.activation == "silu":
        return gate / (1 + np.exp(-gate))
    inner = np.float32(np.sqrt(2 / np.pi)) * (gate + np.float32(0.044715) * gate**3)
    return np.float32(0.5) * gate * (1 + np.tanh(inner))


class Layer:
    """One layer's tensors by their names within it."""

    def __init__(self, config: ModelConfig, tensors: dict[str, Floats], index: int) -> None:
        self.config = config
        self.settings = config.layers[index]
        self.tensors = {
            name.removeprefix(f"blk.{index}."): tensor
            for name, tensor in tensors.items()
            if name.startswith(f"blk.{index}.")
        }

    def norm(self, x: Floats, name: str) -> Floats:
        return rms_norm(x, self.tensors[f"{name}.weight"], self.config.rms_norm_eps)

    def post_norm(self, x: Floats, name: str) -> Floats:
        return self.norm(x, name) if self.config.has_post_norms else x

    def project(self, x: Floats, name: str, num_heads: int) -> Floats:
        out = x @ self.tensors[f"{name}.weight"].T
        if self.config.has_qkv_bias:
            out = out + self.tensors[f"{name}.bias"]
        return out.reshape(len(x), num_heads, -1)

    def attention(self, x: Floats, positions: Integers, visible: NDArray[np.bool_]) -> Floats:
        config = self.config
        q = self.project(x, "attn_q", config.num_heads)
        k = self.project(x, "attn_k", config.num_kv_heads)
        v = self.project(x, "attn_v", config.num_kv_heads)
        if config.has_qk_norm:
            q, k = self.norm(q, "attn_q_norm"), self.norm(k, "attn_k_norm")
        rope = config.ropes[self.settings.rope]
        q, k = rotate(q, positions, rope, config), rotate(k, positions, rope, config)
        if self.settings.window is not None:
            visible = visible & (positions[:, None] - positions[None, :] < self.settings.window)
        mixed = attend(q, k, v, visible, config.attention_scale).reshape(len(x), -1)
        return mixed @ self.tensors["attn_output.weight"].T

    def feed_forward(self, x: Floats) -> Floats:
        gate, up = x @ self.tensors["ffn_gate.weight"].T, x @ self.tensors["ffn_up.weight"].T
        return (activate(gate, self.config) * up) @ self.tensors["ffn_down.weight"].T

    def forward(self, x: Floats, positions: Integers, visible: NDArray[np.bool_]) -> Floats:
        attended = self.attention(self.norm(x, "attn_norm"), positions, visible)
        x = x + self.post_norm(attended, "post_attention_norm")
        return x + self.post_norm(self.feed_forward(self.norm(x, "ffn_norm")), "post_ffw_norm")


def forward(
    config: ModelConfig,
    tensors: dict[str, Floats],
    tokens: list[int],
    positions: list[int] | None = None,
    visible: NDArray[np.bool_] | None = None,
) -> tuple[Floats, list[Floats]]:
    """Logits [rows, vocabulary], and the hidden states after the embedding and each layer. Causal by default; a
    layer's window is applied on top of `visible`."""
    rows = len(tokens)
    where = np.arange(rows) if positions is None else np.array(positions)
    mask = np.tril(np.ones((rows, rows), bool)) if visible is None else visible
    x = tensors["token_embd.weight"][tokens] * np.float32(config.embedding_scale)
    hidden = [x]
    for index in range(config.num_layers):
        x = Layer(config, tensors, index).forward(x, where, mask)
        hidden.append(x)
    head = tensors.get("output.weight", tensors["token_embd.weight"])
    return rms_norm(x, tensors["output_norm.weight"], config.rms_norm_eps) @ head.T, hidden
