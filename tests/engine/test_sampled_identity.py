"""Sampled text on the default model: one seed, one text, whatever drafts, whoever rides along, preempted or not."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from paceline.acceptance import create_acceptance_rule
from paceline.controller import OFF, BatchView, Controller, OffController, Plan, PlanEntry, SequenceView
from paceline.engine import Engine, EngineOptions, Request
from paceline.models import Tokenizer, open_model
from paceline.proposers import NgramProposer
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.sampling_params import SamplingParams
from paceline.telemetry import Reason, StepRecord
from paceline.testing import ScriptedDraft, ScriptedProposer

QUESTIONS = Path(__file__).parent.parent / "data" / "spec_bench_subset.jsonl"
NUM_TOKENS = 24
COVERING = [
    {"temperature": 0.7, "top_p": 0.95, "repetition_penalty": 1.1},
    {"temperature": 1.0},
    {"temperature": 1.5, "top_k": 50, "presence_penalty": 0.5},
    {"temperature": 1.0, "min_p": 0.05, "frequency_penalty": 0.8, "logit_bias": {28: -5.0}},
    {"temperature": 0.7, "bad_words": ["the"], "min_tokens": NUM_TOKENS},
    {"temperature": 0.0, "repetition_penalty": 1.3},
]


class RandomController(Controller):
    """Another proposer and another number of draft tokens for every sequence of every step."""

    def __init__(self) -> None:
        self.random = Random(4)
        self.num_accepted = self.num_rejected = 0

    def plan(self, batch: BatchView) -> Plan:
        return Plan(tuple(self.entry(view, batch.max_draft_rows // len(batch.sequences)) for view in batch.sequences))

    def entry(self, view: SequenceView, most: int) -> PlanEntry:
        num_tokens = min(self.random.randint(0, 7), view.room, most)
        proposer = self.random.choice(["ngram", "scripted"]) if num_tokens else OFF
        return PlanEntry(view.sequence, proposer, num_tokens, Reason.SCRIPTED)

    def observe(self, record: StepRecord) -> None:
        self.num_accepted += sum(step.accepted for step in record.sequences)
        self.num_rejected += sum(step.drafted - step.accepted for step in record.sequences)


@pytest.fixture(scope="module")
def model(smollm2_path: Path) -> Iterator[tuple[NativeRuntime, Tokenizer]]:
    with open_model(smollm2_path) as opened:
        yield NativeRuntime.load(opened, NativeOptions(max_length=512, num_pages=48)), opened.tokenizer()


def requests_of(tokenizer: Tokenizer) -> list[Request]:
    questions = [json.loads(line)["turns"][0] for line in QUESTIONS.read_text().splitlines()][:12]
    return [
        Request(
            tokenizer.encode(question)[:60],
            SamplingParams(max_tokens=NUM_TOKENS, **COVERING[i % len(COVERING)]),  # type: ignore[arg-type]
            sample_seed=1000 + i,
        )
        for i, question in enumerate(questions)
    ]


def serve(engine: Engine, requests: list[Request], random: Random | None = None) -> list[tuple[int, ...]]:
    sequences = [engine.add_request(request) for request in requests]
    tokens: dict[int, tuple[int, ...]] = dict.fromkeys(sequences, ())
    while engine.has_unfinished:
        for output in engine.step():
            tokens[output.sequence] += output.tokens
        engine.check_integrity()
        if random is not None and random.random() < 0.1:
            engine.preempt(random.choice(sequences))
    return [tokens[sequence] for sequence in sequences]


def test_one_seed_one_text(model: tuple[NativeRuntime, Tokenizer]) -> None:
    runtime, tokenizer = model
    requests, rule, encode = requests_of(tokenizer), create_acceptance_rule("match"), tokenizer.encode_continuation
    options = EngineOptions(max_num_seqs=1, reuses_prefixes=False)
    plain = Engine(runtime, OffController(), [], rule, encode=encode, options=options)
    expected = [serve(plain, [request])[0] for request in requests]
    random = Random(3)

    def script(context: tuple[int, ...], num_tokens: int) -> ScriptedDraft:
        """Mostly the true continuation, as a tree with a wrong sibling now and then."""
        i = next(i for i, request in enumerate(requests) if context[: len(request.prompt)] == tuple(request.prompt))
        truth = expected[i][len(context) - len(requests[i].prompt) :][:num_tokens]
        tokens, parents, parent = list[int](), list[int](), -1
        for token in truth:
            if random.random() < 0.3:
                tokens.append(random.randrange(49152))
                parents.append(parent)
            tokens.append(token if random.random() < 0.85 else random.randrange(49152))
            parents.append(parent)
            parent = len(tokens) - 1
        return ScriptedDraft(tuple(tokens), tuple(parents)).cut(num_tokens)

    controller = RandomController()
    proposers = [NgramProposer(min_match=1), ScriptedProposer(script)]
    drafting = Engine(runtime, controller, proposers, rule, encode=encode, options=EngineOptions(max_draft_tokens=7))
    assert serve(drafting, requests, random) == expected
    assert controller.num_accepted > 50
    assert controller.num_rejected > 50
    assert drafting.stats().num_preemptions > 0
