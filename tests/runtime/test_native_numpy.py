"""The native forward against the plain float32 NumPy forward, on tiny random files of every tensor type."""

from collections.abc import Callable
from itertools import cycle, product
from pathlib import Path

import numpy as np
import numpy_decoder
import pytest
import random_blocks
from gguf_files import VARIANTS, write_tiny_llama, write_tiny_model

from paceline.models import TensorRole, TensorType, open_model
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime, runnable_isas

# Relative to the largest logit of the reference. Float weights meet unquantised activations, so only the rounding of
# keys and values to float16 (2^-11 of each) and the order of sums differ. Quantised weights meet activations rounded to
# 8 bit in groups of 32: each product is off by up to 1/254 of its group's largest input, and two layers pass that on.
FLOATS = (TensorType.F32, TensorType.F16, TensorType.BF16)
TOLERANCE = {kind.name: 2e-3 if kind in FLOATS else 3e-2 for kind in TensorType}
ISAS = runnable_isas()
PORTABLE_TYPES = ("F32", "Q4_1", "Q6_K")  # slow there: what differs by architecture does not differ by type
TOKENS = [5, 17, 300, 2, 88, 88, 261, 40, 7, 199, 3, 3, 120, 64, 255, 31, 8, 301, 19, 77]

# Where the codes lie in a unit of the file, and how many bytes it has.
CODES = {
    "Q4_0": (slice(2, 18), 18),
    "Q4_1": (slice(4, 20), 20),
    "Q5_0": (slice(2, 22), 22),
    "Q5_1": (slice(4, 24), 24),
    "Q8_0": (slice(2, 34), 34),
    "Q2_K": (slice(16, 80), 84),
    "Q3_K": (slice(0, 96), 110),
    "Q4_K": (slice(16, 144), 144),
    "Q5_K": (slice(16, 176), 176),
    "Q6_K": (slice(0, 192), 210),
    "Q8_K": (slice(4, 260), 292),
    "IQ4_NL": (slice(2, 18), 18),
    "IQ4_XS": (slice(8, 136), 136),
    "MXFP4": (slice(1, 17), 17),
}
FILLS = (0x00, 0xFF, 0x80, 0x7F, 0x77)  # in one type or another, codes at both ends of its range

ISA_TYPES = [*product(["auto"], TOLERANCE), *product(["portable"], PORTABLE_TYPES)]


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("is_head_tied", [True, False])
@pytest.mark.parametrize("tensor_type", sorted(TOLERANCE))
def test_forward_equals_numpy(tmp_path: Path, tensor_type: str, is_head_tied: bool, isa: str) -> None:
    tensors = write_tiny_llama(tmp_path / "m.gguf", tensor_type=tensor_type, is_head_tied=is_head_tied)
    with open_model(tmp_path / "m.gguf") as model:
        runtime = NativeRuntime.load(model, NativeOptions(isa=isa, num_threads=2))
    rows = tuple(range(len(TOKENS)))
    segment = Segment(0, 0, (3, 1), tuple(TOKENS), logits_rows=rows, hidden_layers=(0, 1, 2))
    scores = runtime.forward([segment])
    logits, hidden = numpy_decoder.forward(runtime.config, tensors, TOKENS)
    tolerance = TOLERANCE[tensor_type]
    assert scores.rows == tuple((0, row) for row in rows)
    assert relative_error(scores.logits[:, : runtime.info.vocab_size], logits) < tolerance
    assert scores.hidden is not None
    np.testing.assert_array_equal(scores.hidden[:, 0], hidden[0])  # the embedding is looked up, not computed
    for layer in (1, 2):
        assert relative_error(scores.hidden[:, layer], hidden[layer]) < tolerance


@pytest.mark.parametrize("isa", ISAS)
def test_mixed_types_and_odd_sizes(tmp_path: Path, isa: str) -> None:
    """A Q8_0 head over Q4_1 layers, a vocabulary that is no multiple of 8, one head per key/value head, one layer."""
    tensors = write_tiny_llama(
        tmp_path / "m.gguf",
        head_type="Q8_0",
        vocab_size=323,
        num_heads=4,
        num_kv_heads=4,
        num_layers=1,
        intermediate_size=320,
        seed=3,
    )
    with open_model(tmp_path / "m.gguf") as model:
        runtime = NativeRuntime.load(model, NativeOptions(isa=isa, num_threads=1))
    assert runtime.info.padded_vocab_size == 336
    segment = Segment(0, 0, (0, 1), tuple(TOKENS), logits_rows=(len(TOKENS) - 1,))
    found = runtime.forward([segment]).logits
    logits, _ = numpy_decoder.forward(runtime.config, tensors, TOKENS)
    assert found.shape == (1, 336)
    assert relative_error(found[:, :323], logits[-1:]) < TOLERANCE["Q4_1"]


def quantized(x: np.ndarray) -> np.ndarray:
    """Activations as quantised weights meet them: 8 bits, a scale for each 32."""
    groups = x.reshape(-1, 32)
    scales = np.abs(groups).max(1, keepdims=True) / np.float32(127)
    return (np.rint(groups / scales) * scales).reshape(x.shape)


def overwrite(path: Path, content: dict[TensorRole, Callable[[int], bytes]]) -> None:
    """Give tensors of a file other bytes: what a function of their number makes."""
    with open_model(path) as model:
        infos = {role: model.tensors[role] for role in content}
    with path.open("r+b") as raw:
        for role, info in infos.items():
            raw.seek(info.offset)
            raw.write(content[role](info.num_bytes))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("tensor_type", sorted(TOLERANCE))
def test_products_stand_for_the_files_numbers(tmp_path: Path, tensor_type: str, isa: str) -> None:
    """One product alone, for 1 to 18 rows: nothing but the order of float32 sums may differ."""
    path = tmp_path / "m.gguf"
    tensors = write_tiny_llama(
        path, tensor_type="F32", head_type=tensor_type, is_head_tied=False, num_layers=1, hidden_size=512
    )
    overwrite(path, {TensorRole(name, 0): bytes for name in ("o", "down")})
    with open_model(path) as model:
        runtime = NativeRuntime.load(model, NativeOptions(isa=isa, num_threads=1))
    tokens = TOKENS[:18]
    normed = numpy_decoder.rms_norm(
        tensors["token_embd.weight"][tokens], tensors["output_norm.weight"], runtime.config.rms_norm_eps
    )
    inputs = normed if TensorType[tensor_type] in FLOATS else quantized(normed)
    expected = inputs.astype(np.float64) @ tensors["output.weight"].T
    for num_rows in (1, 2, 3, 4, 5, 7, 16, 18):
        segment = Segment(0, 0, (0, 1), tuple(tokens[:num_rows]), logits_rows=tuple(range(num_rows)))
        found = runtime.forward([segment]).logits[:, : runtime.info.vocab_size]
        assert relative_error(found, expected[:num_rows]) < 2e-6


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("tensor_type", CODES)
def test_no_sum_overflows(tmp_path: Path, tensor_type: str, isa: str) -> None:
    """The largest codes of either sign meet the largest inputs of either sign, and every sum has room for them."""
    path = tmp_path / "m.gguf"
    size = {"tensor_type": "F32", "num_layers": 1, "hidden_size": 512}
    tensors = write_tiny_llama(path, **size, head_type=tensor_type, is_head_tied=False)
    signs = np.float32([[1, 1, 1, 1], [-1, -1, -1, -1], [1, 1, -1, -1], [1, -1, 1, -1], [-1, -1, 1, 1]])
    inputs = np.tile(signs, (1, 128))  # of magnitude 1, which the norm leaves them: each becomes the code 127 or -127
    codes, unit_bytes = CODES[tensor_type]
    with open_model(path) as model:
        head = np.array(model.data(TensorRole("head"))).reshape(len(tensors["output.weight"]), -1, unit_bytes)
    for row, fill in zip(head, cycle(FILLS), strict=False):
        row[:, codes] = fill
    overwrite(
        path,
        {
            **{TensorRole(name, 0): bytes for name in ("o", "down")},
            TensorRole("head"): lambda _: head.tobytes(),
            TensorRole("embedding"): lambda num_bytes: inputs.tobytes().ljust(num_bytes, b"\0"),
            TensorRole("output_norm"): lambda num_bytes: np.ones(num_bytes // 4, np.float32).tobytes(),
        },
    )
    with open_model(path) as model:
        runtime = NativeRuntime.load(model, NativeOptions(isa=isa, num_threads=1))
    weights = random_blocks.unpack(head.reshape(len(head), -1), tensor_type)
    expected = inputs.astype(np.float64) @ weights.T.astype(np.float64)
    for num_rows in (1, 2, 5):
        segment = Segment(0, 0, (0,), tuple(range(num_rows)), logits_rows=tuple(range(num_rows)))
        found = runtime.forward([segment]).logits[:, : runtime.info.vocab_size]
        assert relative_error(found, expected[:num_rows]) < 1e-5  # the norm's epsilon is 5e-6 of it


@pytest.mark.parametrize(
    ("isa", "tensor_type"), [*product(["auto"], TOLERANCE), *product(["portable"], PORTABLE_TYPES)]
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_architectures_equal_numpy(tmp_path: Path, variant: str, tensor_type: str, isa: str) -> None:
    """Prefill in two chunks, past every window; hidden states too: they hold what norms after a block left."""
    tensors = write_tiny_model(tmp_path / "m.gguf", tensor_type=tensor_type, **VARIANTS[variant])
    with open_model(tmp_path / "m.gguf") as model:
        runtime = NativeRuntime.load(model, NativeOptions(isa=isa, num_threads=2))
    tokens, pages, layers = TOKENS * 3, (3, 1, 0, 2), tuple(range(runtime.config.num_layers + 1))
    logits, hidden = numpy_decoder.forward(runtime.config, tensors, tokens)
    runtime.forward([Segment(0, 0, pages, tuple(tokens[:21]))])
    rest = tuple(tokens[21:])
    segment = Segment(0, 21, pages, rest, logits_rows=tuple(range(len(rest))), hidden_layers=layers)
    scores = runtime.forward([segment])
    tolerance = TOLERANCE[tensor_type]
    assert relative_error(scores.logits[:, : runtime.info.vocab_size], logits[21:]) < tolerance
    assert scores.hidden is not None
    for layer in layers:
        assert relative_error(scores.hidden[:, layer], hidden[layer][21:]) < tolerance


# A window of 3 hides the first nodes of a branch from the last ones; of 1, everything but the row itself.
TREE_VARIANTS = {"llama": {}, "narrow": {"sliding_window": 3}, "narrowest": {"sliding_window": 1}, **VARIANTS}


@pytest.mark.parametrize("variant", TREE_VARIANTS)
def test_tree_sees_ancestors_only(tmp_path: Path, variant: str) -> None:
    """A tree against NumPy with an explicit mask: siblings share a position and do not see each other."""
    tensors = write_tiny_model(tmp_path / "m.gguf", tensor_type="F32", **TREE_VARIANTS[variant])
    with open_model(tmp_path / "m.gguf") as model:
        runtime = NativeRuntime.load(model, NativeOptions(num_threads=2))
    run, tree, parents = TOKENS * 2, TOKENS[:8], (39, 39, 40, 41, 41, 43, 45, 46)
    segment = Segment(0, 0, (0, 1, 2), tuple(run + tree), parents, logits_rows=tuple(range(48)))
    visible = np.zeros((48, 48), bool)
    for row in range(48):
        visible[row, segment.path_to(row)] = True
    found = runtime.forward([segment]).logits
    logits, _ = numpy_decoder.forward(runtime.config, tensors, run + tree, segment.positions(), visible)
    assert relative_error(found[:, : runtime.info.vocab_size], logits) < TOLERANCE["F32"]


@pytest.mark.parametrize("vector_type", ["F16", "BF16"])
def test_short_vectors_are_widened(tmp_path: Path, vector_type: str) -> None:
    """Norms and biases in 16 bits."""
    tensors = write_tiny_model(tmp_path / "m.gguf", architecture="qwen2", tensor_type="F32", vector_type=vector_type)
    with open_model(tmp_path / "m.gguf") as model:
        runtime = NativeRuntime.load(model)
    logits, _ = numpy_decoder.forward(runtime.config, tensors, TOKENS)
    found = runtime.forward([Segment(0, 0, (0, 1), tuple(TOKENS), logits_rows=(19,))]).logits
    assert relative_error(found[:, : runtime.info.vocab_size], logits[-1:]) < TOLERANCE["F32"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("tensor_type", ["F32", "Q4_1"])
@pytest.mark.parametrize("isa", ISAS)
def test_faulty_weight_shows_in_the_logits(tmp_path: Path, tensor_type: str, value: float, isa: str) -> None:
    """A number that is not finite must not be hidden by the quantisation of the activations behind it."""
    path = tmp_path / "m.gguf"
    write_tiny_llama(path, tensor_type=tensor_type)
    with open_model(path) as model:
        norm = model.tensors[TensorRole("ffn_norm", 0)]
    with path.open("r+b") as raw:
        raw.seek(norm.offset + 7 * 4)
        raw.write(np.float32(value).tobytes())
    with open_model(path) as model:
        runtime = NativeRuntime.load(model, NativeOptions(isa=isa))
    logits = runtime.forward([Segment(0, 0, (0,), (1, 2, 3), logits_rows=(2,))]).logits
    assert not np.isfinite(logits).all()
