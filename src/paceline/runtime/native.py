"""The CPU runtime: packed weights and the compiled decoder forward behind the runtime contract."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from paceline import _native
from paceline.errors import PacelineError, UsageError
from paceline.models import Model, ModelConfig, Progress, SilentProgress, TensorRole
from paceline.runtime.base import Runtime, RuntimeInfo, Scores, Segment
from paceline.runtime.threads import default_num_threads

_LARGEST = {"num_threads": 1024, "max_rows": 65536, "max_logits_rows": 65536}
SPARE_SLOTS = 64  # draft rows lie behind the newest position: at full capacity too they need slots


def runnable_isas() -> tuple[str, ...]:
    """Names of the kernels that this build has and this processor runs, the fastest first; "portable" is the last."""
    return tuple(_native.runnable_isas())


@dataclass(frozen=True, slots=True)
class NativeOptions:
    """`max_length` None means the model's context; `num_threads` None what the process may use; `num_pages` None what
    one sequence of `max_length` needs. `vocab_size` is the number of tokens that may be produced, where the file's
    embedding has padding rows behind them. `isa` is one of `runnable_isas`, or "auto" for the fastest of them.
    """

    max_length: int | None = None
    num_threads: int | None = None
    num_pages: int | None = None
    vocab_size: int | None = None
    max_rows: int = 256
    max_logits_rows: int = 64
    isa: str = "auto"

    def __post_init__(self) -> None:
        for name in ("num_threads", "num_pages", "vocab_size", "max_rows", "max_logits_rows"):
            value, largest = getattr(self, name), _LARGEST.get(name, 2**31 - 1)
            is_default = value is None and name not in ("max_rows", "max_logits_rows")
            if not is_default and (type(value) is not int or not 1 <= value <= largest):
                raise UsageError(f"{name} is {value!r}; expected an integer from 1 to {largest}")
        if self.isa not in ("auto", *runnable_isas()):
            names = ", ".join(runnable_isas())
            raise UsageError(f"isa is {self.isa!r}; expected 'auto' or what this build and processor have: {names}")


class NativeRuntime(Runtime):
    """Row-invariant, at any thread count, for one build, model file and instruction set.

    Activations are quantised to 8 bits in groups of 32 where they meet quantised weights; keys and values are float16.
    """

    def __init__(self, config: ModelConfig, options: NativeOptions) -> None:
        self.config = config
        self.num_threads = options.num_threads if options.num_threads is not None else default_num_threads()
        max_length = self._max_length(config, options)
        num_pages = options.num_pages
        if num_pages is None:
            num_pages = -(-(max_length + SPARE_SLOTS) // _native.PAGE_SIZE)
        self._embedding_bytes = 0
        self._decoder = _make_decoder(_native_config(config, options, max_length, num_pages, self.num_threads))
        self._info = RuntimeInfo(
            name=f"native-{self._decoder.isa}",
            vocab_size=config.vocab_size if options.vocab_size is None else min(options.vocab_size, config.vocab_size),
            padded_vocab_size=self._decoder.padded_vocab_size,
            num_layers=config.num_layers,
            hidden_size=config.hidden_size,
            max_length=max_length,
            max_rows=options.max_rows,
            max_logits_rows=options.max_logits_rows,
            page_size=_native.PAGE_SIZE,
            num_pages=num_pages,
        )

    @staticmethod
    def _max_length(config: ModelConfig, options: NativeOptions) -> int:
        value = options.max_length
        if value is None:
            return config.context_length
        if type(value) is not int or not 1 <= value <= config.context_length:
            raise UsageError(
                f"max_model_len is {value!r}; expected an integer from 1 to {config.context_length}, "
                "the model's context"
            )
        return value

    @classmethod
    def load(cls, model: Model, options: NativeOptions | None = None, progress: Progress | None = None) -> Self:
        """Pack the weights of an open model, which may be closed afterwards."""
        runtime = cls(model.config, options if options is not None else NativeOptions())
        runtime.load_weights(model, progress if progress is not None else SilentProgress())
        return runtime

    def load_weights(self, model: Model, progress: Progress) -> None:
        """Pack every tensor of `model`, whose configuration this runtime was made with."""
        progress.begin("Packing weights", sum(info.num_bytes for info in model.tensors.values()))
        try:
            done = 0
            for role, info in model.tensors.items():
                self._load_tensor(model, role)
                model.release(role)
                done += info.num_bytes
                progress.update(done)
        finally:
            progress.end()
        self._decoder.check_complete()

    def _load_tensor(self, model: Model, role: TensorRole) -> None:
        info = model.tensors[role]
        if len(info.shape) == 1:
            return self._decoder.load_vector(role.name, role.layer, model.data(role).view(np.float32))
        if role.name == "embedding" and not self.config.is_head_tied:
            self._embedding_bytes = info.num_bytes
        rows, columns = info.shape
        return self._decoder.load_matrix(role.name, role.layer, int(info.type), rows, columns, model.data(role))

    @property
    def info(self) -> RuntimeInfo:
        return self._info

    @property
    def weight_bytes(self) -> int:
        """Packed bytes that one decode step reads: all layers and the head."""
        return self._decoder.weight_bytes

    @property
    def embedding_bytes(self) -> int:
        """Bytes of an embedding that is not the head too, as they were loaded; else 0, for then they are in
        `weight_bytes`. A step reads one row of it for each token."""
        return self._embedding_bytes

    @property
    def cache_bytes(self) -> int:
        """Bytes of the page store when every page has been written."""
        return self._decoder.store_bytes

    def forward(self, segments: Sequence[Segment]) -> Scores:
        # One width of hidden states serves all segments: the union of the layers that any of them asks for.
        if len({segment.sequence for segment in segments}) != len(segments):
            raise ValueError("a sequence appears twice in one forward")
        hidden_layers = sorted({layer for segment in segments for layer in segment.hidden_layers})
        native = [_native_segment(segment) for segment in segments]
        self._decoder.forward(native, hidden_layers)
        rows = tuple((segment.sequence, row) for segment in segments for row in segment.logits_rows)
        hidden = self._decoder.hidden(len(hidden_layers)) if hidden_layers else None
        return Scores(self._decoder.logits(), rows, hidden)

    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None:
        self._decoder.copy_slots(list(pages), list(moves))

    def copy_page(self, source: int, destination: int) -> None:
        self._decoder.copy_page(source, destination)

    def fill_pages(self, pages: Sequence[int]) -> None:
        """Write small reproducible numbers into pages, for measuring at a context without its prefill."""
        self._decoder.fill_pages(list(pages))

    def poison_pages(self, pages: Sequence[int]) -> None:
        """Write NaN into pages, so that reading a slot that was never written cannot go unnoticed."""
        self._decoder.poison_pages(list(pages))

    def read_bandwidth(self, num_bytes: int = 256 << 20, repeats: int = 5) -> float:
        """Bytes per second that all threads together read from memory, the best of several attempts."""
        return self._decoder.read_bandwidth(num_bytes, repeats)

    def code_rate(self, repeats: int = 5) -> float:
        """Products of 8-bit inputs with weights of up to 6 bits, a second, that all threads do at best: their limit."""
        return self._decoder.code_rate(repeats)

    def float_rate(self, repeats: int = 5) -> float:
        """Multiply-adds in float32 a second that all threads do at best: the limit of attention."""
        return self._decoder.float_rate(repeats)

    def start_trace(self) -> None:
        """Time the phases of every forward from here on, until `stop_trace`; forgets what was timed before."""
        self._decoder.start_trace()

    def stop_trace(self) -> None:
        self._decoder.stop_trace()

    def trace(self) -> _native.ForwardTrace:
        """The sums since `start_trace`; without forwards and lists while nothing is traced."""
        return self._decoder.trace()


def _make_decoder(config: _native.DecoderConfig) -> _native.Decoder:
    try:
        return _native.Decoder(config)
    except MemoryError:
        positions = config.num_pages * _native.PAGE_SIZE
        cache = 4 * positions * config.num_layers * config.num_kv_heads * config.head_dim
        raise PacelineError(
            f"there is not enough memory for a cache of {positions} positions ({cache / 1e6:.0f} MB) and "
            f"{config.max_rows} rows of activations; ask for a smaller max_model_len"
        ) from None
    except RuntimeError as error:  # threads that could not be started
        raise PacelineError(str(error)) from None


def _native_segment(segment: Segment) -> _native.Segment:
    try:
        return _native.Segment(
            segment.length,
            segment.pages,
            segment.tokens,
            segment.parents,
            segment.logits_rows,
            bool(segment.hidden_layers),
            segment.is_write_suppressed,
        )
    except TypeError:
        raise ValueError(f"sequence {segment.sequence} holds something that is no 32-bit integer: {segment}") from None


def _native_config(
    config: ModelConfig, options: NativeOptions, max_length: int, num_pages: int, num_threads: int
) -> _native.DecoderConfig:
    native = _native.DecoderConfig()
    for name in (
        "num_layers",
        "hidden_size",
        "intermediate_size",
        "num_heads",
        "num_kv_heads",
        "head_dim",
        "vocab_size",
        "rope_dim",
        "is_rope_split",
        "rms_norm_eps",
        "attention_scale",
        "embedding_scale",
        "has_qkv_bias",
        "has_qk_norm",
        "has_post_norms",
    ):
        setattr(native, name, getattr(config, name))
    native.is_gelu = config.activation == "gelu_tanh"
    native.layer_windows = [layer.window or 0 for layer in config.layers]
    native.layer_ropes = [layer.rope for layer in config.layers]
    native.rope_frequencies = [list(rope.frequencies) for rope in config.ropes]
    native.rope_magnitudes = [rope.magnitude for rope in config.ropes]
    native.max_length = max_length
    native.max_rows = options.max_rows
    native.max_logits_rows = options.max_logits_rows
    native.num_pages = num_pages
    native.num_threads = num_threads
    native.isa = options.isa
    return native
