"""Qwen2.5-Coder and Gemma 3 against golden values made once with transformers in float32 from the same files.

The files are large and no part of this project: `make test-models` fetches them.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from paceline.models import Tokenizer, cache_folder, open_model
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime

GOLDEN = Path(__file__).parent.parent / "golden" / "models"
RMS_TOLERANCE = 0.5  # over a top 20; activations are rounded to 8 bit before every product, the reference's are not
PERPLEXITY_TOLERANCE = 0.02


@pytest.fixture(scope="module", params=sorted(path.stem for path in GOLDEN.glob("*.json")))
def loaded(request: pytest.FixtureRequest) -> Iterator[tuple[dict, NativeRuntime, Tokenizer]]:
    path = cache_folder() / "test-models" / f"{request.param}.gguf"
    if not path.exists():
        pytest.skip(f"{path} is not there; `make test-models` fetches it")
    with open_model(path) as model:
        runtime = NativeRuntime.load(model, NativeOptions(max_length=1024, max_rows=600, max_logits_rows=600))
        yield json.loads((GOLDEN / f"{request.param}.json").read_text()), runtime, model.tokenizer()


def run(runtime: NativeRuntime, ids: list[int], rows: list[int]) -> np.ndarray:
    pages = tuple(range(-(-len(ids) // runtime.info.page_size)))
    return runtime.forward([Segment(0, 0, pages, tuple(ids), logits_rows=tuple(rows))]).logits


def test_logits(loaded: tuple[dict, NativeRuntime, Tokenizer]) -> None:
    golden, runtime, _ = loaded
    for prompt in golden["prompts"]:
        positions = prompt["positions"]
        logits = run(runtime, prompt["ids"], [p["position"] for p in positions])
        for row, expected in zip(logits, positions, strict=True):
            difference = row[expected["top_ids"]] - np.array(expected["top_logits"])
            assert np.sqrt(np.mean(difference**2)) < RMS_TOLERANCE
            if expected["top_logits"][0] - expected["top_logits"][1] > 4 * RMS_TOLERANCE:
                assert int(row.argmax()) == expected["top_ids"][0]


def test_perplexity(loaded: tuple[dict, NativeRuntime, Tokenizer]) -> None:
    golden, runtime, _ = loaded
    ids = golden["perplexity"]["ids"]
    logits = run(runtime, ids, list(range(len(ids) - 1))).astype(np.float64)
    highest = logits.max(axis=1)
    log_total = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
    nll = log_total - logits[np.arange(len(ids) - 1), ids[1:]]
    assert np.exp(nll.mean()) == pytest.approx(golden["perplexity"]["perplexity"], rel=PERPLEXITY_TOLERANCE)


def test_token_ids(loaded: tuple[dict, NativeRuntime, Tokenizer]) -> None:
    golden, _, tokenizer = loaded
    for prompt in golden["prompts"]:
        assert tokenizer.encode(prompt["text"]) == prompt["ids"]
