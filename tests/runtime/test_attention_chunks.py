"""Attention at the borders of its chunks of 256 positions: the same bits for a row alone and among others.

Contexts of several chunks, rows around a border, windows that begin inside a chunk, trees behind long prefixes.
"""

from pathlib import Path

import numpy as np
import numpy_decoder
import pytest
from gguf_files import write_tiny_model

from paceline.models import open_model
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime

CHUNK = 256
LENGTH = 3 * CHUNK + 40
ISAS = ["auto", "portable"]
PAGES = tuple(reversed(range(LENGTH // 16 + 2)))
TOKENS = tuple(int(token) for token in np.random.default_rng(7).integers(0, 320, LENGTH))
# Windows that cut a chunk, cover less than one, and more than one.
SHAPES = {
    "llama": {},
    "grouped": {"num_heads": 9, "num_kv_heads": 1, "hidden_size": 288},
    "window of 100": {"sliding_window": 100},
    "window of 300": {"sliding_window": 300},
}


def load(path: Path, **options: object) -> NativeRuntime:
    with open_model(path) as model:
        return NativeRuntime.load(model, NativeOptions(num_pages=64, **options))  # type: ignore[arg-type]


def prefill(runtime: NativeRuntime, length: int, size: int) -> np.ndarray:
    """Logits of each chunk's last row, run in chunks of `size`."""
    runtime.poison_pages(range(64))
    last = []
    for begin in range(0, length, size):
        tokens = TOKENS[begin : min(begin + size, length)]
        scores = runtime.forward([Segment(0, begin, PAGES, tokens, logits_rows=(len(tokens) - 1,))])
        last.append(scores.logits[0].copy())
    return np.stack(last)


@pytest.fixture(scope="module", params=SHAPES)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("model") / "m.gguf"
    write_tiny_model(file, context_length=1024, num_layers=1, **SHAPES[request.param])
    return file


@pytest.mark.parametrize("isa", ISAS)
def test_rows_across_a_border(path: Path, isa: str) -> None:
    """16 rows from each of these lengths, as one chain, as halves and alone; a tree of the same tokens too."""
    runtime = load(path, isa=isa, num_threads=2)
    prefill(runtime, LENGTH - 20, 64)
    for length in (1, 15, 16, CHUNK - 17, CHUNK - 9, CHUNK - 1, CHUNK, 2 * CHUNK - 8, 3 * CHUNK - 3):
        tokens = TOKENS[length : length + 16]
        chain = runtime.forward([Segment(0, length, PAGES, tokens, logits_rows=tuple(range(16)))]).logits.copy()
        tree = Segment(0, length, PAGES, tokens, tuple(range(15)), logits_rows=tuple(range(16)))
        np.testing.assert_array_equal(runtime.forward([tree]).logits, chain)
        halves = [
            runtime.forward(
                [Segment(0, length + i, PAGES, tokens[i : i + 8], logits_rows=tuple(range(8)))]
            ).logits.copy()
            for i in (0, 8)
        ]
        np.testing.assert_array_equal(np.concatenate(halves), chain)
        for i, token in enumerate(tokens):
            alone = runtime.forward([Segment(0, length + i, PAGES, (token,), logits_rows=(0,))]).logits
            np.testing.assert_array_equal(alone[0], chain[i])


@pytest.mark.parametrize("isa", ISAS)
def test_branches_behind_a_long_prefix(path: Path, isa: str) -> None:
    """Each node of a tree gives what its path gives as a chain, on both sides of a border."""
    runtime = load(path, isa=isa, num_threads=3)
    prefill(runtime, 3 * CHUNK, 64)
    nodes, parents = TOKENS[:9], (0, 0, 1, 2, 2, 4, 5, 7)
    for length in (CHUNK - 20, CHUNK - 3, 2 * CHUNK - 2, 3 * CHUNK - 1):
        segment = Segment(0, length, PAGES, nodes, parents, logits_rows=tuple(range(9)))
        tree = runtime.forward([segment]).logits.copy()
        for row in range(9):
            branch = tuple(nodes[ancestor] for ancestor in segment.path_to(row))
            chain = Segment(0, length, PAGES, branch, logits_rows=(len(branch) - 1,))
            np.testing.assert_array_equal(runtime.forward([chain]).logits[0], tree[row])


@pytest.mark.parametrize("isa", ISAS)
def test_threads_and_prefill_chunks(path: Path, isa: str) -> None:
    """Whole chunks are dealt out among threads, or not: as the batch has it."""
    expected = prefill(load(path, isa=isa, num_threads=1), LENGTH, 8)
    for num_threads, size in ((2, 8), (3, 64), (5, 200), (1, 256)):
        found = prefill(load(path, isa=isa, num_threads=num_threads), LENGTH, size)
        ends = [min(begin + size, LENGTH) for begin in range(0, LENGTH, size)]
        np.testing.assert_array_equal(found, expected[[(end - 1) // 8 for end in ends]])


@pytest.mark.parametrize("isa", ISAS)
def test_long_contexts_equal_numpy(tmp_path: Path, isa: str) -> None:
    tensors = write_tiny_model(tmp_path / "m.gguf", tensor_type="F32", context_length=1024, num_layers=1)
    runtime = load(tmp_path / "m.gguf", isa=isa, num_threads=2)
    logits, _ = numpy_decoder.forward(runtime.config, tensors, list(TOKENS))
    found = prefill(runtime, LENGTH, 8)[:, : runtime.info.vocab_size]
    expected = logits[7::8]
    assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max()
