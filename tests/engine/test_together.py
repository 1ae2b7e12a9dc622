"""Many requests at once on the default model, helped, hindered and interrupted: each says what it says alone."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest
from engine_parts import CapriciousController

from paceline.acceptance import create_acceptance_rule
from paceline.controller import OffController
from paceline.engine import Engine, EngineOptions, FinishReason, Request, StopMatch
from paceline.models import Tokenizer, open_model
from paceline.proposers import NgramProposer
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.sampling_params import SamplingParams
from paceline.telemetry import StepRecord
from paceline.testing import ScriptedDraft, ScriptedProposer

QUESTIONS = Path(__file__).parent.parent / "data" / "spec_bench_subset.jsonl"
NUM_REQUESTS = 32
NUM_CANCELLED = 5
NUM_PAGES = 10  # for two whole requests, and up to eight may run
MAX_STEPS = 2000
OPTIONS = EngineOptions(max_num_seqs=8, max_draft_tokens=2)

Ending = tuple[tuple[int, ...], FinishReason | None, tuple[str, int] | None]


@pytest.fixture(scope="module")
def model(smollm2_path: Path) -> Iterator[tuple[NativeRuntime, Tokenizer]]:
    with open_model(smollm2_path) as opened:
        yield NativeRuntime.load(opened, NativeOptions(max_length=128, num_pages=NUM_PAGES)), opened.tokenizer()


def requests_of(tokenizer: Tokenizer, random: Random) -> list[Request]:
    """Half of them begin with one of two texts; drafts, lengths, ends and tenants as they come."""
    turns = [json.loads(line)["turns"][0] for line in QUESTIONS.read_text().splitlines()]
    texts = [tokenizer.encode(turn) for turn in turns]
    beginnings = [texts[0][:36], texts[1][:21]]
    requests = []
    for i, text in enumerate(texts[2 : NUM_REQUESTS + 2]):
        if i % 5 == 0:  # these are served first, grow together, and run out of pages
            requests.append(Request(text[:4], SamplingParams(56, ignore_eos=True), priority=2))
            continue
        prompt = (
            [*random.choice(beginnings), *text[: random.randint(0, 12)]] if i % 2 else text[: random.randint(6, 40)]
        )
        params = SamplingParams(
            random.randint(16, 32),
            stop=random.choice(((), (), (",",), (" the", "\n\n"), (". The", "ing to"))),
            min_tokens=random.choice((0, 0, 5)),
            ignore_eos=random.random() < 0.5,
        )
        requests.append(
            Request(
                prompt,
                params,
                namespace=random.choice(("", "tenant")),
                num_speculative_tokens=random.choice((0, None, None, 4)),
                priority=random.choice((0, 0, 0, 1)),
            )
        )
    return requests


class Answers:
    """What has come for each request, by its number."""

    def __init__(self, engine: Engine, requests: Sequence[Request]) -> None:
        self.engine = engine
        self.numbers = {engine.add_request(request): number for number, request in enumerate(requests)}
        self.tokens: list[tuple[int, ...]] = [() for _ in requests]
        self.ends: list[tuple[FinishReason | None, StopMatch | None]] = [(None, None) for _ in requests]
        self.num_reused = 0

    def step(self) -> None:
        for output in self.engine.step():
            number = self.numbers[output.sequence]
            assert self.ends[number][0] is None
            self.num_reused += 0 if self.tokens[number] else output.num_reused
            self.tokens[number] += output.tokens
            self.ends[number] = output.finish_reason, output.stop
        self.engine.check_integrity()

    def ending(self, number: int) -> Ending:
        reason, stop = self.ends[number]
        return self.tokens[number], reason, None if stop is None else (stop.text, stop.num_bytes)


def alone(model: tuple[NativeRuntime, Tokenizer], request: Request) -> Ending:
    runtime, tokenizer = model
    engine = engine_of(runtime, tokenizer, None, EngineOptions(max_num_seqs=1, reuses_prefixes=False))
    answers = Answers(engine, [request])
    while engine.has_unfinished:
        answers.step()
    return answers.ending(0)


def engine_of(
    runtime: NativeRuntime,
    tokenizer: Tokenizer,
    script: Callable[[tuple[int, ...], int], ScriptedDraft] | None,
    options: EngineOptions,
    records: Callable[[StepRecord], None] | None = None,
) -> Engine:
    """Plain where there is no script."""
    return Engine(
        runtime,
        OffController() if script is None else CapriciousController(("ngram", "scripted"), Random(2)),
        [] if script is None else [NgramProposer(min_match=1), ScriptedProposer(script)],
        create_acceptance_rule("match"),
        eos_token_ids=tokenizer.stop_ids,
        banned_token_ids=tokenizer.unproducible_ids,
        token_text=tokenizer.text_bytes,
        options=options,
        records=records,
    )


def script_of(requests: Sequence[Request], expected: Sequence[Ending], vocab_size: int) -> Callable[..., ScriptedDraft]:
    """Mostly right, beyond the end of the answer too; a chain, or a right one behind wrong siblings."""
    texts = [(*request.prompt, *tokens) for request, (tokens, *_) in zip(requests, expected, strict=True)]

    def script(context: tuple[int, ...], num_tokens: int) -> ScriptedDraft:
        random = Random(str(context))
        text = next(text for text in texts if text[: len(context)] == context)
        tokens, parents, parent = list[int](), list[int](), -1
        is_tree = random.random() < 0.5
        for right in (*text[len(context) :], 0, 0, 0):
            if is_tree and random.random() < 0.5:
                tokens.append(random.randrange(vocab_size))
                parents.append(parent)
            tokens.append(right if random.random() < 0.85 else random.randrange(vocab_size))
            parents.append(parent)
            parent = len(tokens) - 1
        return ScriptedDraft(tuple(tokens), tuple(parents) if is_tree else ()).cut(num_tokens)

    return script


class Trouble:
    """Cancels and preempts at random, between steps and in the middle of them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.records: list[StepRecord] = []
        self.cancelled: set[int] = set()
        self.num_shortages = 0  # preemptions that nobody asked for
        self._strikes: list[Callable[[], object]] = []

    def observe(self, record: StepRecord) -> None:
        self.records.append(record)
        while self._strikes:
            self._strikes.pop()()

    def drive(self, engine: Engine, answers: Answers) -> None:
        self.cancelled = set(self.random.sample(sorted(answers.numbers), NUM_CANCELLED))
        waiting = set(self.cancelled)
        while engine.has_unfinished:
            assert len(self.records) < MAX_STEPS
            running = [state.id for state in engine._scheduler.running]
            if running and len(self.records) > 40 and self.random.random() < 0.05:
                self._preempt(engine, self.random.choice(running))
            for sequence in sorted(waiting.intersection(running)):
                if self.random.random() < 0.15:
                    waiting.discard(sequence)
                    self._strikes.append(partial(engine.abort, sequence))
            most = engine.stats().num_preemptions + len(self._strikes)
            answers.step()
            self.num_shortages += max(0, engine.stats().num_preemptions - most)

    def _preempt(self, engine: Engine, sequence: int) -> None:
        if self.random.random() < 0.5:
            engine.preempt(sequence)
        else:
            self._strikes.append(partial(engine.preempt, sequence))


def test_each_of_many_says_what_it_says_alone(model: tuple[NativeRuntime, Tokenizer]) -> None:
    runtime, tokenizer = model
    random = Random(1)
    requests = requests_of(tokenizer, random)
    expected = [alone(model, request) for request in requests]
    script, trouble = script_of(requests, expected, runtime.info.vocab_size), Trouble(random)
    engine = engine_of(runtime, tokenizer, script, OPTIONS, trouble.observe)
    answers = Answers(engine, requests)
    trouble.drive(engine, answers)
    for sequence, number in answers.numbers.items():
        tokens, reason, stop = answers.ending(number)
        if sequence in trouble.cancelled and reason is None:
            assert tokens == expected[number][0][: len(tokens)], number
        else:
            assert (tokens, reason, stop) == expected[number], number
    steps = [step for record in trouble.records for step in record.sequences]
    assert trouble.num_shortages >= 1
    assert engine.stats().finish_counts[FinishReason.ABORT] >= 2
    assert answers.num_reused > 30
    assert sum(step.accepted for step in steps) > 50
    assert sum(step.drafted - step.accepted for step in steps) > 50
    assert {reason for _, reason, _ in expected} == {FinishReason.STOP, FinishReason.LENGTH}
    assert engine.num_free_pages == NUM_PAGES
