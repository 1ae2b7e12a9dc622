"""On against off on the default model: identical ids, whoever drafts, however many tokens, chain or tree."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from paceline.acceptance import create_acceptance_rule
from paceline.controller import OFF, BatchView, Controller, OffController, Plan, PlanEntry, SequenceView
from paceline.engine import Engine, Request
from paceline.models import ChatTemplate, Tokenizer, encode_chat, open_model
from paceline.proposers import NgramProposer
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.sampling_params import SamplingParams
from paceline.telemetry import Reason, StepRecord
from paceline.testing import ScriptedDraft, ScriptedProposer

QUESTIONS = Path(__file__).parent.parent / "data" / "spec_bench_subset.jsonl"
NUM_TOKENS = 32
VOCAB = 49152


class RandomController(Controller):
    """Another proposer and another number of draft tokens for every step, none at all among them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.num_accepted = 0
        self.num_rejected = 0

    def plan(self, batch: BatchView) -> Plan:
        return Plan(tuple(self.entry(view) for view in batch.sequences))

    def entry(self, view: SequenceView) -> PlanEntry:
        num_tokens = min(self.random.randint(0, 12), view.room)
        proposer = self.random.choice(["ngram", "scripted"]) if num_tokens else OFF
        return PlanEntry(view.sequence, proposer, num_tokens, Reason.SCRIPTED)

    def observe(self, record: StepRecord) -> None:
        self.num_accepted += sum(step.accepted for step in record.sequences)
        self.num_rejected += sum(step.drafted - step.accepted for step in record.sequences)


def corrupted(truth: Sequence[int], num_tokens: int, random: Random) -> ScriptedDraft:
    """The true continuation with wrong tokens strewn in, as a chain or as a tree with wrong siblings."""
    if random.random() < 0.5:
        return ScriptedDraft(
            tuple(t if random.random() < 0.85 else random.randrange(VOCAB) for t in truth[:num_tokens])
        )
    tokens: list[int] = []
    parents: list[int] = []
    trunk = -1
    for token in truth:
        siblings = [random.randrange(VOCAB) for _ in range(random.randint(0, 2))]
        family = [*siblings, token] if random.random() < 0.9 else siblings
        random.shuffle(family)
        parent = trunk
        for member in family:
            if member == token:
                trunk = len(tokens)
            tokens.append(member)
            parents.append(parent)
        if trunk == parent:
            break
    return ScriptedDraft(tuple(tokens), tuple(parents)).cut(num_tokens)


@pytest.fixture(scope="module")
def model(smollm2_path: Path) -> Iterator[tuple[NativeRuntime, Tokenizer, ChatTemplate]]:
    with open_model(smollm2_path) as model:
        template = model.chat_template()
        assert template is not None
        options = NativeOptions(max_length=1024)
        yield NativeRuntime.load(model, options), model.tokenizer(), template


def run(engine: Engine, prompt: list[int]) -> list[int]:
    engine.add_request(Request(prompt, SamplingParams(max_tokens=NUM_TOKENS)))
    ids: list[int] = []
    while engine.has_unfinished:
        for output in engine.step():
            ids += output.tokens
        engine.check_integrity()
    return ids


def test_real_prompts(model: tuple[NativeRuntime, Tokenizer, ChatTemplate]) -> None:
    runtime, tokenizer, template = model
    questions = [json.loads(line)["turns"][0] for line in QUESTIONS.read_text().splitlines()]
    assert len(questions) >= 40
    prompts = [encode_chat(tokenizer, template, [{"role": "user", "content": question}]) for question in questions]
    rule = create_acceptance_rule("match")
    plain = Engine(runtime, OffController(), [], rule, eos_token_ids=tokenizer.stop_ids)
    expected = {tuple(prompt): run(plain, prompt) for prompt in prompts}

    random = Random(0)

    def script(context: tuple[int, ...], num_tokens: int) -> ScriptedDraft:
        prompt = next(p for p in expected if context[: len(p)] == p)
        return corrupted(expected[prompt][len(context) - len(prompt) :], num_tokens, random)

    controller = RandomController(random)
    proposers = [NgramProposer(min_match=1), ScriptedProposer(script)]
    drafting = Engine(runtime, controller, proposers, rule, eos_token_ids=tokenizer.stop_ids)
    for prompt in prompts:
        assert run(drafting, prompt) == expected[tuple(prompt)]
    assert controller.num_accepted > 200  # drafts were really accepted, and really rejected
    assert controller.num_rejected > 200
