"""Every architecture and rope scaling against transformers, whose logits golden/architectures.json holds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy_decoder
import pytest
from golden.architecture_cases import CASES, IDS, POSITIONS, case_tokens, write_case

from paceline.models import open_model
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime

GOLDEN = {
    case["name"]: case
    for case in json.loads((Path(__file__).parents[1] / "golden" / "architectures.json").read_text())["cases"]
}
# Both relative to the largest logit. NumPy differs in the order of float32 sums only; the native forward keeps keys and
# values as float16 beside that.
NUMPY_TOLERANCE = 1e-5
NATIVE_TOLERANCE = 1e-3


def check(logits: np.ndarray, case: dict[str, Any], tolerance: float) -> None:
    expected = np.array(case["logits"])
    bound = tolerance * np.abs(expected).max()
    assert np.abs(logits[:, IDS] - expected).max() < bound
    logsumexp = np.log(np.exp(logits.astype(np.float64)).sum(axis=-1))
    assert np.abs(logsumexp - case["logsumexp"]).max() < bound


@pytest.mark.parametrize("name", CASES)
def test_forward_equals_transformers(name: str, tmp_path: Path) -> None:
    tensors = write_case(tmp_path / "m.gguf", name)
    tokens = case_tokens(name)
    assert tokens == GOLDEN[name]["tokens"]
    with open_model(tmp_path / "m.gguf") as model:
        reference, _ = numpy_decoder.forward(model.config, tensors, tokens)
        check(reference[list(POSITIONS)], GOLDEN[name], NUMPY_TOLERANCE)
        for isa in ("auto", "portable"):
            runtime = NativeRuntime.load(model, NativeOptions(isa=isa, num_threads=2))
            segment = Segment(0, 0, (2, 0, 3, 1), tuple(tokens), logits_rows=POSITIONS)
            check(runtime.forward([segment]).logits[:, : runtime.info.vocab_size], GOLDEN[name], NATIVE_TOLERANCE)


def test_every_case_has_golden_data() -> None:
    assert GOLDEN.keys() == CASES.keys()
