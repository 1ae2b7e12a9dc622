"""The Llama forward in plain float32 NumPy, from the definition: the reference for the native one. Slow on purpose."""

import numpy as np
from numpy.typing import NDArray

from paceline.models import ModelConfig

Floats = NDArray[np.float32]


def rms_norm(x: Floats, weight: Floats, eps: float) -> Floats:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(eps)) * weight


def rotate(x: Floats, positions: NDArray[np.int64], config: ModelConfig) -> Floats:
    """Rotate neighbouring pairs; x is [rows, heads, head_dim]."""
    angles = positions[:, None] * np.array(config.ropes[0].frequencies)
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    out = x.copy()
    even, odd = x[..., 0 : config.rope_dim : 2], x[..., 1 : config.rope_dim : 2]
    out[..., 0 : config.rope_dim : 2] = even * cos - odd * sin
    out[..., 1 : config.rope_dim : 2] = even * sin + odd * cos
    return out.astype(np.float32)


def attend(q: Floats, k: Floats, v: Floats, visible: NDArray[np.bool_]) -> Floats:
    """q is [rows, heads, head_dim], k and v [rows, kv heads, head_dim]; row i sees the rows j with visible[i, j]."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(np.float32(q.shape[-1]))
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("hij,jhd->ihd", weights, v)


def forward(
    config: ModelConfig,
    tensors: dict[str, Floats],
    tokens: list[int],
    positions: list[int] | None = None,
    visible: NDArray[np.bool_] | None = None,
) -> tuple[Floats, list[Floats]]:
    """Logits [rows, vocabulary], and the hidden states after the embedding and each layer. Causal by default."""
    rows = len(tokens)
    where = np.arange(rows) if positions is None else np.array(positions)
    mask = np.tril(np.ones((rows, rows), bool)) if visible is None else visible
    x = tensors["token_embd.weight"][tokens]
    hidden = [x]
    for layer in range(config.num_layers):
        w = {
            name: tensors[f"blk.{layer}.{name}.weight"]
            for name in (
                "attn_norm",
                "attn_q",
                "attn_k",
                "attn_v",
                "attn_output",
                "ffn_norm",
                "ffn_gate",
                "ffn_up",
                "ffn_down",
            )
        }
        normed = rms_norm(x, w["attn_norm"], config.rms_norm_eps)
        q = rotate((normed @ w["attn_q"].T).reshape(rows, config.num_heads, -1), where, config)
        k = rotate((normed @ w["attn_k"].T).reshape(rows, config.num_kv_heads, -1), where, config)
        v = (normed @ w["attn_v"].T).reshape(rows, config.num_kv_heads, -1)
        x = x + attend(q, k, v, mask).reshape(rows, -1) @ w["attn_output"].T
        normed = rms_norm(x, w["ffn_norm"], config.rms_norm_eps)
        gate, up = normed @ w["ffn_gate"].T, normed @ w["ffn_up"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w["ffn_down"].T
        hidden.append(x)
    head = tensors.get("output.weight", tensors["token_embd.weight"])
    return rms_norm(x, tensors["output_norm.weight"], config.rms_norm_eps) @ head.T, hidden
