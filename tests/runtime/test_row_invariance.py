"""A row's logits are the same bits whatever rides with it, whatever lies in free pages, on any number of threads."""

from pathlib import Path

import numpy as np
import pytest
from gguf_files import VARIANTS, write_tiny_llama, write_tiny_model
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.models import open_model
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime, runnable_isas
from paceline.testing import RuntimeSizes, check_equal_runtimes, check_runtime

KINDS = [
    ("Q4_1", "Q8_0"),
    ("Q4_0", "F16"),
    ("Q8_0", "F32"),
    ("Q5_0", "Q5_1"),
    ("Q4_K", "Q6_K"),
    ("Q5_K", "Q3_K"),
    ("Q2_K", "Q8_K"),
    ("IQ4_NL", "MXFP4"),
    ("IQ4_XS", "BF16"),
]
ISAS = runnable_isas()
VOCAB = 320


def load(path: Path, **options: object) -> NativeRuntime:
    with open_model(path) as model:
        return NativeRuntime.load(model, NativeOptions(**options))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    for tensor_type, head_type in KINDS:
        write_tiny_llama(folder / f"{tensor_type}.gguf", tensor_type=tensor_type, head_type=head_type)
    for variant, options in VARIANTS.items():
        write_tiny_model(folder / f"{variant}.gguf", **options)
    return {path.stem: path for path in folder.iterdir()}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", [kind for kind, _ in KINDS])
def test_contract(paths: dict[str, Path], kind: str, isa: str) -> None:
    check_runtime(lambda: load(paths[kind], isa=isa, num_threads=2, num_pages=64))


# Heads of 8, 24, 40, 32, 64 and 128 channels, groups of 1, 3, 4 and 9 query heads, every type in body and head.
SHAPES = [
    {"tensor_type": "F32", "head_type": "Q4_1", "hidden_size": 96, "num_heads": 12, "num_kv_heads": 3},
    {"tensor_type": "F16", "head_type": "Q4_0", "hidden_size": 96, "num_heads": 4, "num_kv_heads": 4},
    {"tensor_type": "Q8_0", "head_type": "Q4_1", "hidden_size": 160, "num_heads": 4, "num_kv_heads": 1},
    {"tensor_type": "Q4_1", "head_type": "F16", "hidden_size": 288, "num_heads": 9, "num_kv_heads": 1},
    {"tensor_type": "Q4_0", "head_type": "Q8_0", "hidden_size": 192, "num_heads": 3, "num_kv_heads": 1},
    {"tensor_type": "Q4_1", "head_type": "Q8_0", "hidden_size": 128, "num_heads": 1, "num_kv_heads": 1},
]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['hidden_size']}-{shape['num_heads']}")
def test_contract_for_any_shape(tmp_path: Path, shape: dict[str, object], isa: str) -> None:
    write_tiny_llama(tmp_path / "m.gguf", vocab_size=323, intermediate_size=352, num_layers=1, **shape)
    sizes = RuntimeSizes(prefix=37, num_draft=6, num_rounds=2)
    check_runtime(lambda: load(tmp_path / "m.gguf", isa=isa, num_threads=3, num_pages=64), sizes)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_contract_for_any_architecture(paths: dict[str, Path], variant: str, isa: str) -> None:
    sizes = RuntimeSizes(prefix=53, num_draft=6, num_rounds=2)
    check_runtime(lambda: load(paths[variant], isa=isa, num_threads=3, num_pages=64), sizes)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["Q4_1", *VARIANTS])
def test_thread_counts_agree(paths: dict[str, Path], kind: str, isa: str) -> None:
    for num_threads in (2, 3, 7):
        one = load(paths[kind], isa=isa, num_threads=1, num_pages=64)
        check_equal_runtimes(one, load(paths[kind], isa=isa, num_threads=num_threads, num_pages=64))


@pytest.mark.parametrize("isa", ISAS)
def test_what_a_window_hides_is_not_read(paths: dict[str, Path], isa: str) -> None:
    """NaN in every slot before the window, in pages that it hides wholly and in one that it cuts."""
    runtime = load(paths["mistral"], isa=isa, num_threads=2, num_pages=8)
    pages, tokens = (5, 2, 7, 0), tuple(range(40, 100))
    after = [
        Segment(0, 59, pages, (7,), logits_rows=(0,)),
        Segment(0, 59, pages, (7, 8, 9), (0, 0), logits_rows=(0, 1, 2)),  # the children see one position less
    ]
    for segment in after:
        runtime.forward([Segment(0, 0, pages, tokens[:59])])
        expected = runtime.forward([segment]).logits.copy()
        runtime.poison_pages(pages[:2])
        runtime.copy_slots(pages, [(0, slot) for slot in range(32, 40)])  # position 59 sees 40 to 59
        np.testing.assert_array_equal(runtime.forward([segment]).logits, expected)
        assert np.isfinite(expected).all()
        runtime.copy_slots(pages, [(0, 45)])
        assert np.isnan(runtime.forward([segment]).logits).any()  # the poison would have shown


def test_contract_on_the_default_model(smollm2_path: Path) -> None:
    sizes = RuntimeSizes(prefix=37, num_draft=7, num_rounds=1)
    check_runtime(lambda: load(smollm2_path, max_length=256, num_pages=64), sizes)


@pytest.fixture(scope="module")
def runtimes(paths: dict[str, Path]) -> list[NativeRuntime]:
    return [
        load(paths[kind], isa=isa, num_threads=2, num_pages=64, max_rows=64)
        for kind in ("Q4_1", *VARIANTS)
        for isa in ISAS
    ]


def plain_logits(runtime: NativeRuntime, tokens: list[int], pages: tuple[int, ...]) -> np.ndarray:
    """Decode token by token: [tokens, vocabulary]."""
    rows = []
    for i, token in enumerate(tokens):
        rows.append(runtime.forward([Segment(0, i, pages, (token,), logits_rows=(0,))]).logits[0].copy())
    return np.stack(rows)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_chunks_pages_and_neighbours(runtimes: list[NativeRuntime], data: st.DataObject) -> None:
    """Split several sequences into random chunks, run them side by side in random pages among garbage."""
    runtime = data.draw(st.sampled_from(runtimes))
    num_sequences = data.draw(st.integers(1, 4))
    lengths = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=40)
    sequences = [data.draw(lengths) for _ in range(num_sequences)]
    pages = data.draw(st.permutations(range(64)))
    runtime.poison_pages(range(64))
    tables = [tuple(pages[4 * i : 4 * i + 3]) for i in range(num_sequences)]
    expected = [plain_logits(runtime, tokens, tuple(pages[20:23])) for tokens in sequences]
    found: list[list[np.ndarray]] = [[] for _ in sequences]
    while any(len(rows) < len(tokens) for rows, tokens in zip(found, sequences, strict=True)):
        segments = []
        for i, tokens in enumerate(sequences):
            begin = len(found[i])
            if begin < len(tokens):
                size = data.draw(st.integers(1, min(16, len(tokens) - begin)))
                chunk = tuple(tokens[begin : begin + size])
                segments.append(Segment(i, begin, tables[i], chunk, logits_rows=tuple(range(size))))
        scores = runtime.forward(data.draw(st.permutations(segments)))
        for (sequence, _), row in zip(scores.rows, scores.logits, strict=True):
            found[sequence].append(row.copy())
    for rows, plain in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.stack(rows), plain)
