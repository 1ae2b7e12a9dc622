"""The contract between model files and what runs them: which tensors there are, and the numbers of the architecture.

Nothing here reads a file or knows a runtime. Values are checked by whoever makes them: a `ModelConfig` in hand is
consistent with itself and with the tensors of the file that it was read from.
"""

from dataclasses import dataclass
from enum import IntEnum


class TensorType(IntEnum):
    """How weights are packed; the values are ggml's type numbers.

    The quantised types pack runs of `block_size` = 32 consecutive weights of one row, each with a float16 scale d
    (and, for Q4_1, a float16 minimum m):

    - Q4_0: d, then 32 unsigned 4-bit q: weight = d · (q - 8)
    - Q4_1: d, m, then 32 unsigned 4-bit q: weight = d · q + m
    - Q8_0: d, then 32 signed 8-bit q: weight = d · q

    A 4-bit block keeps weights 0…15 in the low and 16…31 in the high halves of its 16 bytes.
    """

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q8_0 = 8

    @property
    def block_size(self) -> int:
        """Weights in one block; a row's length is a multiple of it."""
        return 1 if self in (TensorType.F32, TensorType.F16) else 32

    @property
    def block_bytes(self) -> int:
        """Bytes that one block takes in the file."""
        return _BLOCK_BYTES[self.value]


_BLOCK_BYTES = {0: 4, 1: 2, 2: 18, 3: 20, 8: 34}


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


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The numbers of a Llama-family decoder.

    Projections are `attn_q [num_heads · head_dim, hidden_size]`, `attn_k` and `attn_v
    [num_kv_heads · head_dim, hidden_size]`, `attn_output [hidden_size, num_heads · head_dim]`, `ffn_gate` and `ffn_up
    [intermediate_size, hidden_size]`, `ffn_down [hidden_size, intermediate_size]`. Each key/value head serves
    `num_heads / num_kv_heads` consecutive query heads.
    """

    architecture: str
    """As the file names it: `llama`."""
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
    """Positions that the model was trained for: the most that a sequence may hold."""
    rope_theta: float
    """Base of the rotary frequencies: pair i turns by `position · rope_theta^(-2i / rope_dim)` radians."""
    rope_dim: int
    """How many leading values of each head are rotated; even. Llama files pair neighbours: `(2i, 2i + 1)`."""
    rms_norm_eps: float
    """Added to the mean square under the root of every RMSNorm."""
    is_head_tied: bool
    """True where the output head is the embedding matrix `token_embd.weight`; else it is `output.weight`."""
