"""The compiled core: packed weights, small-batch kernels, paged attention and the decoder forward."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PAGE_SIZE: int
PHASE_KINDS: list[str]
NOT_FINITE: int
NOTHING_ALLOWED: int

def runnable_isas() -> list[str]: ...
def search_row(row: NDArray[np.float32], count: int) -> int: ...

class Draw:
    def __init__(
        self,
        temperature: float,
        log_min_p: float,
        top_k: int,
        top_p: float,
        seed: int,
        position: int,
        stream: int,
        ids: NDArray[np.int32] | None = None,
        values: NDArray[np.float32] | None = None,
        mask: NDArray[np.uint32] | None = None,
    ) -> None: ...

class Sampler:
    def __init__(self, vocab_size: int, isa: str, num_threads: int) -> None: ...
    def sample_rows(
        self,
        logits: NDArray[np.float32],
        rows: Sequence[int],
        draws: Sequence[Draw],
        decoder: Decoder | None = None,
    ) -> list[int]: ...

class DecoderConfig:
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    rope_dim: int
    is_rope_split: bool
    rope_frequencies: list[list[float]]
    rope_magnitudes: list[float]
    layer_ropes: list[int]
    layer_windows: list[int]
    attention_scale: float
    embedding_scale: float
    is_gelu: bool
    has_qkv_bias: bool
    has_qk_norm: bool
    has_post_norms: bool
    rms_norm_eps: float
    max_length: int
    max_rows: int
    max_logits_rows: int
    num_pages: int
    num_threads: int
    isa: str

    def __init__(self) -> None: ...

class Segment:
    def __init__(
        self,
        length: int,
        pages: Sequence[int],
        tokens: Sequence[int],
        parents: Sequence[int],
        logits_rows: Sequence[int],
        wants_hidden: bool,
        is_write_suppressed: bool,
    ) -> None: ...

class ForwardTrace:
    """Sums over traced forwards: wall time, and the threads' time at work and waiting, nanoseconds [scopes][kinds].

    Kinds are PHASE_KINDS; scope 0 is what belongs to no layer, scope i + 1 is layer i. Times of all threads are added.
    """

    @property
    def num_forwards(self) -> int: ...
    @property
    def forward_ns(self) -> int: ...
    @property
    def work(self) -> list[list[int]]: ...
    @property
    def wait(self) -> list[list[int]]: ...

class Decoder:
    def __init__(self, config: DecoderConfig) -> None: ...
    def load_matrix(
        self, role: str, layer: int, type: int, rows: int, columns: int, data: NDArray[np.uint8]
    ) -> None: ...
    def load_vector(self, role: str, layer: int, data: NDArray[np.float32]) -> None: ...
    def check_complete(self) -> None: ...
    def forward(self, segments: Sequence[Segment], hidden_layers: Sequence[int]) -> None: ...
    def logits(self) -> NDArray[np.float32]: ...
    def hidden(self, num_layers: int) -> NDArray[np.float32]: ...
    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None: ...
    def copy_page(self, source: int, destination: int) -> None: ...
    def fill_pages(self, pages: Sequence[int]) -> None: ...
    def poison_pages(self, pages: Sequence[int]) -> None: ...
    def read_bandwidth(self, bytes: int, repeats: int) -> float: ...
    def code_rate(self, repeats: int) -> float: ...
    def float_rate(self, repeats: int) -> float: ...
    def start_trace(self) -> None: ...
    def stop_trace(self) -> None: ...
    def trace(self) -> ForwardTrace: ...
    @property
    def padded_vocab_size(self) -> int: ...
    @property
    def isa(self) -> str: ...
    @property
    def weight_bytes(self) -> int: ...
    @property
    def store_bytes(self) -> int: ...
