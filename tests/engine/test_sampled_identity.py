"""Sampled text on the default model: one seed, one text, whatever drafts, whoever rides along, preempted or not."""

import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random

import pytest
from covering import covering_array
from sampled_traffic import PARAMETERS, RandomController, drafting_engine, request_of, serve, serve_plainly

from paceline.engine import Request
from paceline.models import Tokenizer, open_model
from paceline.runtime.native import NativeOptions, NativeRuntime

QUESTIONS = Path(__file__).parent.parent / "data" / "spec_bench_subset.jsonl"
Model = tuple[NativeRuntime, Tokenizer]


@pytest.fixture(scope="module")
def model(smollm2_path: Path) -> Iterator[Model]:
    with open_model(smollm2_path) as opened:
        yield NativeRuntime.load(opened, NativeOptions(max_length=512, num_pages=48)), opened.tokenizer()


def questions(tokenizer: Tokenizer, size: int) -> list[list[int]]:
    return [tokenizer.encode(json.loads(line)["turns"][0])[:size] for line in QUESTIONS.read_text().splitlines()]


def check_identity(model: Model, requests: Sequence[Request]) -> RandomController:
    """Together, drafted for and preempted, each request has the text that it has alone."""
    expected = serve_plainly(*model, requests)
    assert len(set(expected)) > 20, "so many texts are different ones"
    controller = RandomController()
    engine = drafting_engine(*model, controller, requests, expected)
    assert serve(engine, requests, Random(3)) == expected
    assert engine.stats().num_preemptions > 0
    return controller


def test_one_seed_one_text(model: Model) -> None:
    """Every two values of two parameters come together, in two requests."""
    rows = covering_array(PARAMETERS) * 2
    prompts = questions(model[1], 60)
    requests = [request_of(prompts[i], 24, 1000 + i, row) for i, row in enumerate(rows)]
    controller = check_identity(model, requests)
    assert controller.num_accepted > 50
    assert controller.num_rejected > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("temperature", "top_k"),
    [pair for pair in product(PARAMETERS["temperature"], PARAMETERS["top_k"]) if pair != (0, 50)],
)
def test_every_combination_of_every_parameter(model: Model, temperature: float, top_k: int) -> None:
    """2,048 requests for each temperature and top-k; at temperature 0, where truncation does nothing, once."""
    values = {**PARAMETERS, "temperature": (temperature,), "top_k": (top_k,)}
    prompts = questions(model[1], 8)
    requests = []
    for i, combination in enumerate(product(*values.values())):
        prompt = [*model[1].encode(f"{i:04}"), *prompts[i % len(prompts)]]
        requests.append(request_of(prompt, 8, i, dict(zip(values, combination, strict=True))))
    check_identity(model, requests)
