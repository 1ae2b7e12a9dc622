"""Sampled requests for an engine, and what hinders it: drafts of every kind, batch mates, preemption, chunks."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance import create_acceptance_rule
from paceline.controller import OFF, BatchView, Controller, OffController, Plan, PlanEntry, SequenceView
from paceline.engine import Engine, EngineOptions, Request
from paceline.models import Tokenizer
from paceline.proposers import NgramProposer
from paceline.runtime import Runtime
from paceline.sampling_params import SamplingParams
from paceline.telemetry import Reason, StepRecord
from paceline.testing import ScriptedDraft, ScriptedProposer

Texts = list[tuple[int, ...]]


def favour_by_the_text(tokens: Sequence[int], row: NDArray[np.float32]) -> NDArray[np.float32]:
    """A caller's processor: what it favours depends on every token of the answer."""
    row[np.arange(8) + 31 * sum(tokens) % (len(row) - 8)] += np.float32(4)
    return row


PARAMETERS: Mapping[str, Sequence[Any]] = {
    "temperature": (0.7, 1.0, 1.5, 0.0),
    "top_p": (0.9, 1.0),
    "top_k": (0, 50),
    "min_p": (0.0, 0.02),
    "repetition_penalty": (1.2, 1.0),
    "presence_penalty": (0.0, 2.0),
    "frequency_penalty": (-1.5, 0.0),
    "logit_bias": ((), ((28, -5.0), (260, 3.0))),
    "bad_words": (("and", "of the", "in the", "to the", "a new", ". The"), ()),  # of one token and of two
    "allowed_token_ids": (None, tuple(range(30_000))),
    "min_tokens": (0, 6),
    "stop_token_ids": ((28, 30, 198, 253, 260, 281, 284, 288, 314), ()),  # frequent ones: comma, full stop, " the"
    "logits_processors": ((), (favour_by_the_text,)),
}
"""By name: values that between them do and do nothing, both ways round, so that a covering array mixes them."""


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


def mostly_right_script(
    requests: Sequence[Request], expected: Texts, vocab_size: int
) -> Callable[[tuple[int, ...], int], ScriptedDraft]:
    """Mostly the true continuation, as a tree with a wrong sibling now and then. Prompts are all different and none the
    beginning of another."""
    random = Random(3)
    texts = {tuple(request.prompt): (*request.prompt, *text) for request, text in zip(requests, expected, strict=True)}
    sizes = sorted({len(prompt) for prompt in texts})

    def script(context: tuple[int, ...], num_tokens: int) -> ScriptedDraft:
        text = next(texts[context[:size]] for size in sizes if context[:size] in texts)
        tokens, parents, parent = list[int](), list[int](), -1
        for token in text[len(context) :][:num_tokens]:
            if random.random() < 0.3:
                tokens.append(random.randrange(vocab_size))
                parents.append(parent)
            tokens.append(token if random.random() < 0.85 else random.randrange(vocab_size))
            parents.append(parent)
            parent = len(tokens) - 1
        return ScriptedDraft(tuple(tokens), tuple(parents)).cut(num_tokens)

    return script


def serve(engine: Engine, requests: Sequence[Request], random: Random | None = None) -> Texts:
    """The texts of all requests, served together; with `random`, preempted now and then."""
    sequences = [engine.add_request(request) for request in requests]
    tokens: dict[int, tuple[int, ...]] = dict.fromkeys(sequences, ())
    while engine.has_unfinished:
        for output in engine.step():
            assert output.error is None, output.error
            tokens[output.sequence] += output.tokens
        if random is not None and random.random() < 0.1:
            engine.preempt(random.choice(sequences))
    engine.check_integrity()
    return [tokens[sequence] for sequence in sequences]


def serve_plainly(runtime: Runtime, tokenizer: Tokenizer, requests: Sequence[Request]) -> Texts:
    """One after the other, each prompt in one piece, without drafts or anything to share."""
    options = EngineOptions(max_num_seqs=1, reuses_prefixes=False)
    engine = _engine(runtime, tokenizer, OffController(), [], options)
    return [serve(engine, [request])[0] for request in requests]


def drafting_engine(
    runtime: Runtime, tokenizer: Tokenizer, controller: Controller, requests: Sequence[Request], expected: Texts
) -> Engine:
    """Two proposers, one that makes chains and one that makes trees; prompts in small chunks beside what decodes."""
    script = mostly_right_script(requests, expected, runtime.info.vocab_size)
    options = EngineOptions(max_draft_tokens=7, prefill_chunk=24, mixed_prefill_chunk=8)
    proposers = [NgramProposer(min_match=1), ScriptedProposer(script)]
    return _engine(runtime, tokenizer, controller, proposers, options)


def _engine(
    runtime: Runtime, tokenizer: Tokenizer, controller: Controller, proposers: Sequence[Any], options: EngineOptions
) -> Engine:
    return Engine(
        runtime,
        controller,
        proposers,
        create_acceptance_rule("match"),
        banned_token_ids={*tokenizer.unproducible_ids, *tokenizer.stop_ids},  # or some texts would not begin
        encode=tokenizer.encode_continuation,
        options=options,
    )


def request_of(prompt: Sequence[int], max_tokens: int, seed: int, parameters: Mapping[str, Any]) -> Request:
    return Request(tuple(prompt), SamplingParams(max_tokens=max_tokens, **parameters), sample_seed=seed)
