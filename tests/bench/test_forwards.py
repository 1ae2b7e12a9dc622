"""Measured forwards: which n, where, what follows from them, and that nothing stays behind."""

from pathlib import Path

import pytest

from paceline.acceptance import MatchRule
from paceline.bench.forwards import ROWS, forward_time, measure_forwards
from paceline.controller import OffController
from paceline.engine import Engine, Request
from paceline.errors import UsageError
from paceline.models import open_model
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.runtime.profile import step_weight_bytes
from paceline.sampling_params import SamplingParams


def load(path: Path, **options: int) -> tuple[NativeRuntime, int]:
    with open_model(path) as model:
        return NativeRuntime.load(model, NativeOptions(**options)), step_weight_bytes(model)


@pytest.mark.parametrize(
    ("options", "context", "rows"),
    [
        ({"max_length": 128}, 32, ROWS),
        ({"max_length": 60}, 28, ROWS[:-1]),  # the context gives way to the rows
        ({"max_length": 128, "max_rows": 8}, 32, ROWS[:6]),
        ({"max_length": 128, "max_logits_rows": 5}, 32, ROWS[:4]),
        ({"max_length": 2}, 1, (1,)),
    ],
)
def test_it_measures_what_the_runtime_has(
    tiny_llama_path: Path, options: dict[str, int], context: int, rows: tuple[int, ...]
) -> None:
    runtime, weight_bytes = load(tiny_llama_path, **options)
    found = measure_forwards(runtime, weight_bytes, context=32, rounds=2)
    assert found.context == context
    assert tuple(found.forward_ms) == rows
    assert all(ms > 0 for ms in found.forward_ms.values())
    assert found.floor_ms > 0


def test_a_new_engine_answers_as_before(tiny_llama_path: Path) -> None:
    runtime, weight_bytes = load(tiny_llama_path, max_length=128)
    answers = []
    for _ in range(2):
        engine, tokens = Engine(runtime, OffController(), [], MatchRule()), list[int]()
        engine.add_request(Request((1, 2, 3), SamplingParams(20)))
        while engine.has_unfinished:
            tokens += [token for output in engine.step() for token in output.tokens]
        answers.append(tokens)
        measure_forwards(runtime, weight_bytes, context=32, rounds=1)
    assert answers[0] == answers[1]


def test_what_cannot_be_measured_is_refused(tiny_llama_path: Path) -> None:
    runtime, weight_bytes = load(tiny_llama_path, max_length=1)
    with pytest.raises(UsageError, match="max_model_len is 1; expected at least 2"):
        measure_forwards(runtime, weight_bytes)
    with pytest.raises(UsageError, match="rounds is 0"):
        measure_forwards(runtime, weight_bytes, rounds=0)


def test_between_two_measurements_is_a_line() -> None:
    times = {4: 12.0, 1: 10.0, 8: 20.0}
    assert [forward_time(times, n) for n in (1, 2, 4, 6, 8)] == pytest.approx([10.0, 10 + 2 / 3, 12.0, 16.0, 20.0])
    for n in (0, 9):
        with pytest.raises(ValueError, match=rf"T\({n}\) was not measured; known are 1, 4, 8"):
            forward_time(times, n)
    with pytest.raises(ValueError, match="known are none"):
        forward_time({}, 1)
