"""The contract between model files and what runs them: an opened model, its tensors by role, and its numbers.

Nothing here reads a file or knows a runtime. Values are checked by whoever makes them: a `ModelConfig` in hand is
consistent with itself and with the tensors of the files that it was read from.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from paceline.models.chat import ChatTemplate
    from paceline.models.tokenizer import Tokenizer


class TensorType(IntEnum):
    """How weights are packed; the values are ggml's type numbers.

    The float types hold plain values. The others pack runs of `block_size` consecutive weights of one row: 32 of them
    with scales of their own, or 256 in groups of 16 or 32 whose small integer scales share one or two floats.
    """

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    Q8_K = 15
    IQ4_NL = 20
    IQ4_XS = 23
    BF16 = 30
    MXFP4 = 39

    @property
    def is_float(self) -> bool:
        """True for plain values, one by one."""
        return self in (TensorType.F32, TensorType.F16, TensorType.BF16)

    @property
    def block_size(self) -> int:
        """Weights in one block; a row's length is a multiple of it."""
        return _BLOCKS[self.value][0]

    @property
    def block_bytes(self) -> int:
        """Bytes that one block takes in the file."""
        return _BLOCKS[self.value][1]


# fmt: off
_BLOCKS = {  # weights and bytes of a block
    0: (1, 4), 1: (1, 2), 30: (1, 2),
    2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 20: (32, 18), 39: (32, 17),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 23: (256, 136),
}
# fmt: on


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor's place in a model file."""

    name: str
    type: TensorType
    shape: tuple[int, ...]
    """Row-major, rows first: `(out_features, in_features)` for a matrix. The last dimension is contiguous."""
    offset: int
    """Bytes from the start of the file."""
    num_bytes: int
    """Packed size in bytes."""


class TensorRole(NamedTuple):
    """What a tensor is for, whatever its file calls it; `architectures.base` lists the names."""

    name: str
    layer: int = -1
    """-1 for what belongs to no layer."""


@dataclass(frozen=True, slots=True)
class Rope:
    """One set of rotary frequencies: what position p does to pair i of a head."""

    frequencies: tuple[float, ...]
    """Radians a position for each of the `rope_dim / 2` pairs, every scaling applied."""
    magnitude: float = 1.0
    """Factor of both cosine and sine: YaRN's attention temperature (arXiv:2309.00071, section 3.4)."""


@dataclass(frozen=True, slots=True)
class LayerConfig:
    """What sets one layer apart from the others."""

    window: int | None = None
    """A row at position p sees positions from `p - window + 1` on; None: all of them."""
    rope: int = 0
    """Which of the model's `ropes` turns its heads."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The numbers of a decoder with gated feed-forward layers and rotary positions.

    Projections are `q [num_heads · head_dim, hidden_size]`, `k` and `v [num_kv_heads · head_dim, hidden_size]`,
    `o [hidden_size, num_heads · head_dim]`, `gate` and `up [intermediate_size, hidden_size]`,
    `down [hidden_size, intermediate_size]`. Each key/value head serves `num_heads / num_kv_heads` consecutive query
    heads.
    """

    architecture: str
    """As GGUF files name it: `llama`, `qwen2`, …"""
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    """Width of one head, the same for queries, keys and values."""
    vocab_size: int
    """Rows of the embedding and of the head; token ids are `0 … vocab_size - 1`."""
    context_length: int
    """Positions that the model was made for: the most that a sequence may hold."""
    rms_norm_eps: float
    """Added to the mean square under the root of every RMSNorm."""
    is_head_tied: bool
    """True where the output head is the embedding matrix."""
    rope_dim: int
    """How many leading values of each head are rotated; even."""
    is_rope_split: bool
    """Pairs are `(i, i + rope_dim / 2)` where True, neighbours `(2i, 2i + 1)` where False."""
    ropes: tuple[Rope, ...]
    layers: tuple[LayerConfig, ...]
    """One for each of `num_layers`."""
    attention_scale: float
    """Factor of every score `q · k`; usually `head_dim ** -0.5`."""
    embedding_scale: float = 1.0
    """Factor of the embedding rows before the first layer (Gemma: the root of `hidden_size`)."""
    activation: Literal["silu", "gelu_tanh"] = "silu"
    """Of the gate: `silu(gate) · up`, or the tanh form of GELU in its place."""
    has_qkv_bias: bool = False
    """Vectors `q_bias`, `k_bias`, `v_bias` are added to the projections, before norms and rotation."""
    has_qk_norm: bool = False
    """Each query and key head goes through an RMSNorm `q_norm`, `k_norm [head_dim]` before its rotation."""
    has_post_norms: bool = False
    """The outputs of attention and feed-forward go through RMSNorms `post_attn_norm`, `post_ffn_norm` before they are
    added to the residual stream (Gemma)."""


class Model(ABC):
    """An opened model: a file or a folder. Use as a context manager, or call `close`.

    Opening reads and checks headers only; an instance in hand has every tensor that its `config` asks for, in the
    right shape, in a type that can be run.
    """

    path: Path
    config: ModelConfig
    tensors: Mapping[TensorRole, TensorInfo]
    """Everything to load. Types are those that `data` gives, not always those of the file."""

    @abstractmethod
    def data(self, role: TensorRole) -> NDArray[np.uint8]:
        """The bytes of one tensor, packed as its `tensors[role].type` says, rows in order. Vectors are F32.

        May be a view of a mapped file, or made anew by each call."""

    @abstractmethod
    def release(self, role: TensorRole) -> None:
        """Let the system drop what `data` has read from memory; a hint."""

    @abstractmethod
    def tokenizer(self) -> "Tokenizer":
        """Raises `UnsupportedModelError` or `ModelFormatError` where there is none that can be used."""

    @abstractmethod
    def chat_template(self, name: str | Path | None = None) -> "ChatTemplate | None":
        """The model's own template; None where it has none: a base model. `name`: another one of the model's, else the
        path of a file."""

    @abstractmethod
    def close(self) -> None:
        """Views that `data` gave stay valid."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
