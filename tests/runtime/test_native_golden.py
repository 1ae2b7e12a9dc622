"""SmolLM2 against golden values made once with transformers in float32 from the same file, dequantised."""

import json
from pathlib import Path

import numpy as np
import pytest

from paceline.models import open_model
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime

GOLDEN = Path(__file__).parent.parent / "golden"

# The largest deviation of any golden logit, as measured here, is 1.1 at a logit of 40; the root mean square over a top
# 20 stays below 0.6. It comes from the activations, rounded to 8 bit in groups of 32 before every product, through 30
# layers.
LOGIT_TOLERANCE = 1.5
RMS_TOLERANCE = 0.7


@pytest.fixture(scope="module")
def runtime(smollm2_path: Path) -> NativeRuntime:
    with open_model(smollm2_path) as model:
        return NativeRuntime.load(model, NativeOptions(max_length=1024, max_rows=600, max_logits_rows=600))


def run(runtime: NativeRuntime, ids: list[int], rows: list[int]) -> np.ndarray:
    pages = tuple(range(-(-len(ids) // runtime.info.page_size)))
    return runtime.forward([Segment(0, 0, pages, tuple(ids), logits_rows=tuple(rows))]).logits


def prompts() -> list[dict]:
    return json.loads((GOLDEN / "logits.json").read_text())["prompts"]


@pytest.mark.parametrize("prompt", prompts(), ids=lambda prompt: prompt["name"])
def test_logits(runtime: NativeRuntime, prompt: dict) -> None:
    positions = prompt["positions"]
    logits = run(runtime, prompt["ids"], [p["position"] for p in positions])
    for row, golden in zip(logits, positions, strict=True):
        reference = np.array(golden["top_logits"])
        difference = row[golden["top_ids"]] - reference
        assert np.abs(difference).max() < LOGIT_TOLERANCE
        assert np.sqrt(np.mean(difference**2)) < RMS_TOLERANCE
        if reference[0] - reference[1] > LOGIT_TOLERANCE:
            assert int(row.argmax()) == golden["top_ids"][0]


def test_perplexity(runtime: NativeRuntime) -> None:
    golden = json.loads((GOLDEN / "perplexity.json").read_text())
    ids = golden["ids"]
    logits = run(runtime, ids, list(range(len(ids) - 1))).astype(np.float64)
    highest = logits.max(axis=1)
    log_total = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
    nll = log_total - logits[np.arange(len(ids) - 1), ids[1:]]
    assert np.exp(nll.mean()) == pytest.approx(golden["perplexity"], rel=0.01)


def test_greedy_continuations(runtime: NativeRuntime) -> None:
    """Given the reference's own prefix, the same next token wherever its margin exceeds the tolerance."""
    num_compared = 0
    for golden in json.loads((GOLDEN / "greedy.json").read_text())["prompts"]:
        ids = golden["prompt_ids"] + golden["ids"][:-1]
        first = len(golden["prompt_ids"]) - 1
        logits = run(runtime, ids, list(range(first, len(ids))))
        for row, expected, margin in zip(logits, golden["ids"], golden["margins"], strict=True):
            if margin > LOGIT_TOLERANCE:
                assert int(row.argmax()) == expected
                num_compared += 1
    assert num_compared > 100
