"""Replay against live runs: the same counts, to the last token, for whatever ends an answer."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from engine_parts import informed_script

from paceline.acceptance import MatchRule
from paceline.bench.base import ALL, Counts
from paceline.bench.recordings import Recording, Recordings, most_tokens
from paceline.bench.replay import is_text_only, replay, replay_answer
from paceline.controller import FixedController, OffController
from paceline.engine import Engine, EngineOptions, FinishReason, Request
from paceline.errors import UsageError
from paceline.models import encode_chat, open_model
from paceline.proposers import Ask, Capabilities, Draft, Evidence, NgramProposer, Proposer
from paceline.runtime import Runtime
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.sampling_params import SamplingParams
from paceline.telemetry import SpeculationStats, StepRecord
from paceline.testing import ScriptedDraft, ScriptedProposer, TableModel, TableProposer, seeded_table

VOCAB = 5
LOOPING = seeded_table(VOCAB, seed=3, order=2)
PROMPTS = ((0, 1, 2, 3), (2,), (4, 4, 1, 0, 3, 2, 4, 4))
LETTERS = "abcde"


class Stage:
    """Answers with an engine, one request after another."""

    def __init__(
        self, runtime: Runtime, proposer: Proposer | None, k: int = 0, eos: Sequence[int] = (), most: int | None = None
    ) -> None:
        self._records: list[StepRecord] = []
        self._eos = eos
        self._engine = Engine(
            runtime,
            FixedController(proposer.name, k) if proposer else OffController(),
            [proposer] if proposer else [],
            MatchRule(),
            eos_token_ids=eos,
            token_text=lambda token: LETTERS[token].encode(),
            options=EngineOptions(max_draft_tokens=most),
            records=self._records.append,
        )

    @property
    def max_length(self) -> int:
        return self._engine.max_length

    def answer(self, prompt: Sequence[int], params: SamplingParams) -> tuple[tuple[int, ...], FinishReason, Counts]:
        self._records.clear()
        self._engine.add_request(Request(prompt, params, sample_seed=params.seed or 0))
        tokens, reason = list[int](), None
        while self._engine.has_unfinished:
            for output in self._engine.step():
                tokens += output.tokens
                reason = output.finish_reason
        assert reason is not None
        return tuple(tokens), reason, self._counts()

    def _counts(self) -> Counts:
        stats, drafted = SpeculationStats(), Counter[int]()
        for record in self._records:
            stats.add(record)
            drafted.update(step.drafted for step in record.sequences if not step.prefilled)
        return Counts(
            stats.num_target_steps,
            stats.num_emitted,
            stats.num_drafts,
            stats.num_draft_tokens,
            stats.num_accepted_tokens,
            tuple(stats.per_position),
            dict(drafted),
        )


def record(runtime: Runtime, prompt: Sequence[int], params: SamplingParams, eos: Sequence[int] = ()) -> Recording:
    stage = Stage(runtime, None, eos=eos)
    tokens, _, _ = stage.answer(prompt, params)
    return Recording("item", 0, "class", tuple(prompt), tokens, most_tokens(params, len(prompt), stage.max_length))


def check(
    runtime: Runtime,
    proposer: Proposer,
    recording: Recording,
    params: SamplingParams,
    k: int,
    eos: Sequence[int] = (),
    most: int | None = None,
) -> tuple[FinishReason, Counts]:
    """Replay must count what a live run counts; what that was."""
    stage = Stage(runtime, proposer, k, eos, most)
    tokens, reason, live = stage.answer(recording.prompt_ids, params)
    assert tokens == recording.answer_ids
    verifiable = min(runtime.info.max_rows, runtime.info.max_logits_rows) - 1
    replayed = replay_answer(proposer, recording, k, verifiable if most is None else min(most, verifiable))
    assert replayed.counts == live
    assert replayed.num_tokens == len(tokens)
    return reason, live


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("k", range(1, 16))
def test_prompt_lookup_counts_as_live(k: int, temperature: float) -> None:
    runtime = TableModel(LOOPING, VOCAB)
    params = SamplingParams(40, temperature=temperature, seed=11)
    for prompt in PROMPTS:
        reason, live = check(runtime, NgramProposer(), record(runtime, prompt, params), params, k)
        assert reason is FinishReason.LENGTH
        assert live.num_target_steps > 0


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 15])
def test_chains_and_trees_count_as_live(k: int) -> None:
    table = seeded_table(VOCAB, seed=8)
    runtime, params = TableModel(table, VOCAB), SamplingParams(30)
    total = 0
    for seed, prompt in enumerate(PROMPTS):
        proposer = ScriptedProposer(informed_script(table, VOCAB, seed, 0.7))
        total += check(runtime, proposer, record(runtime, prompt, params), params, k)[1].num_accepted_tokens
    assert total > 0


@pytest.mark.parametrize("k", [1, 4, 7])
def test_a_stop_within_a_draft_is_trimmed_as_live(k: int) -> None:
    """Every token is once the one that ends answers, alone or as the end of a stop string, so some ends are drafted."""
    runtime, ends = TableModel(LOOPING, VOCAB), Counter[str]()
    drafter = ScriptedProposer(informed_script(LOOPING, VOCAB, 1, 0.9))
    for prompt in PROMPTS:
        for token in range(VOCAB):
            by_token, by_text = SamplingParams(25, stop_token_ids=(token,)), SamplingParams(25, stop=[LETTERS[token]])
            of_model = SamplingParams(25)
            for params, eos in ((by_token, ()), (by_text, ()), (of_model, (token,))):
                recording = record(runtime, prompt, params, eos)
                reason, live = check(runtime, drafter, recording, params, k, eos)
                ends[f"{reason} {'drafted' if live.num_emitted == live.num_accepted_tokens else 'own'}"] += 1
                assert live.num_accepted_tokens <= live.num_emitted
    assert ends["stop own"] > 0
    assert ends["stop drafted"] > 0


@pytest.mark.parametrize("k", [1, 6, 15])
@pytest.mark.parametrize("most", [None, 0, 3])
def test_limits_shorten_drafts_as_live(k: int, most: int | None) -> None:
    """The token limit, the capacity, and what a forward can check; an answer of one token has no decode step."""
    runtime = TableModel(LOOPING, VOCAB, max_rows=10, max_logits_rows=9)
    for max_tokens in (1, 2, 3, None):
        params = SamplingParams(max_tokens)
        recording = record(runtime, PROMPTS[0], params)
        _, live = check(runtime, NgramProposer(), recording, params, k, most=most)
        assert max(live.drafted, default=0) <= min(k, 8 if most is None else most)


class Witness(NgramProposer):
    """Writes down what it is told and asked."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, object]] = []

    def start(self, sequence: int, context: Sequence[int], namespace: str) -> None:
        self.heard.append(("start", tuple(context)))
        super().start(sequence, context, namespace)

    def extend(self, sequence: int, tokens: Sequence[int], evidence: Evidence | None = None) -> None:
        self.heard.append(("extend", tuple(tokens)))
        super().extend(sequence, tokens, evidence)

    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        self.heard.append(("propose", [ask.num_tokens for ask in asks]))
        return super().propose(asks)

    def finish(self, sequence: int) -> None:
        self.heard.append(("finish", None))
        super().finish(sequence)


@pytest.mark.parametrize("max_tokens", [1, 2, 30])
def test_a_proposer_hears_what_it_hears_live(max_tokens: int) -> None:
    """So one that remembers answers remembers the same."""
    runtime, params = TableModel(LOOPING, VOCAB), SamplingParams(max_tokens)
    live, replayed = Witness(), Witness()
    for prompt in PROMPTS:
        recording = record(runtime, prompt, params)
        Stage(runtime, live, 4).answer(prompt, params)
        replay_answer(replayed, recording, 4, 31)
    assert replayed.heard == live.heard


def test_the_default_model_counts_as_live(smollm2_path: Path) -> None:
    with open_model(smollm2_path) as model:
        tokenizer, template = model.tokenizer(), model.chat_template()
        assert template is not None
        runtime = NativeRuntime.load(model, NativeOptions(max_length=512))
    total = 0
    for text in ("Repeat: one two three four, one two three four.", "Name five birds."):
        prompt = encode_chat(tokenizer, template, [{"role": "user", "content": text}])
        for params in (SamplingParams(32), SamplingParams(32, temperature=0.7, seed=5)):
            recording = record(runtime, prompt, params, tuple(tokenizer.stop_ids))
            for k in (1, 5, 15):
                _, live = check(runtime, NgramProposer(), recording, params, k, tuple(tokenizer.stop_ids))
                total += live.num_accepted_tokens
    assert total > 0


def looping(item: str, task_class: str, num_tokens: int) -> Recording:
    """The answer repeats its period of four tokens; so prompt lookup is right from the second time on."""
    return Recording(item, 0, task_class, (9, 9, 9), tuple([i % 4 for i in range(num_tokens)]), num_tokens)


def test_runs_of_task_classes_and_of_all() -> None:
    recordings = Recordings({}, 63, (looping("a", "copy", 41), looping("b", "talk", 3), looping("c", "copy", 41)))
    runs = replay(replace(recordings, forward_ms={1: 10.0, 8: 10.0}), ["ngram"], [2, 4])
    assert [(run.num_speculative_tokens, run.task_class) for run in runs] == [
        (k, each) for k in (2, 4) for each in ("copy", "talk", ALL)
    ]
    copy, talk, all_of_two = runs[:3]
    assert (copy.num_answers, talk.num_answers, all_of_two.num_answers) == (2, 1, 3)
    assert (copy.num_tokens, talk.num_tokens, all_of_two.num_tokens) == (82, 3, 85)
    assert copy.draft_acceptance_rate == 1.0
    assert copy.acceptance_by_position == (1.0, 1.0)
    assert talk.mean_acceptance_length == 1.0
    assert talk.draft_acceptance_rate is None
    assert all_of_two.mean_acceptance_length is not None
    assert runs[3].mean_acceptance_length > copy.mean_acceptance_length > all_of_two.mean_acceptance_length


def test_the_prediction_is_of_forwards_and_drafting() -> None:
    """With every row as dear as a forward, checking drafts never pays; where rows are free, it pays what τ says."""
    recordings = Recordings({}, 63, (looping("a", "copy", 200),))
    (free, _) = replay(replace(recordings, forward_ms={1: 1e6, 5: 1e6}), ["ngram"], [4])
    (dear, _) = replay(replace(recordings, forward_ms={1: 1e6, 5: 5e6}), ["ngram"], [4])
    assert free.mean_acceptance_length is not None
    assert free.predicted_speedup == pytest.approx(free.mean_acceptance_length, rel=1e-3)
    assert dear.predicted_speedup is not None
    assert dear.predicted_speedup < 1.05
    assert replay(replace(recordings, forward_ms={}), ["ngram"], [4])[0].predicted_speedup is None


def test_counts_of_drafts_of_several_lengths() -> None:
    """Of two drafts one has one token, which stands, and one has three, of which two stand."""
    answer = (0, 1, 2, 3, 4, 5)
    proposer = ScriptedProposer([ScriptedDraft((1,)), ScriptedDraft((3, 4, 9))])
    counts = replay_answer(proposer, Recording("a", 0, "c", (7,), answer, 20), 3, 63).counts
    assert counts == Counts(2, 5, 2, 4, 3, (2, 1), {1: 1, 3: 1})


def test_what_cannot_be_replayed_is_refused() -> None:
    recordings = Recordings({}, 63, (looping("a", "copy", 9),))
    with pytest.raises(UsageError, match="'table' needs more than the text of an answer"):
        replay_answer(TableProposer(TableModel(LOOPING, VOCAB)), recordings.answers[0], 2, 63)
    with pytest.raises(UsageError, match="measured up to 4 rows; expected at most 3"):
        replay(replace(recordings, forward_ms={1: 1.0, 4: 1.5}), ["ngram"], [3, 4])
    with pytest.raises(UsageError, match="num_speculative_tokens is 0"):
        replay(replace(recordings, forward_ms={}), ["ngram"], [0])
    with pytest.raises(UsageError, match="unknown proposer 'ngran'"):
        replay(replace(recordings, forward_ms={}), ["ngran"], [1])


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (Capabilities(), True),
        (Capabilities(can_tree=True), True),
        (Capabilities(is_sampled=True), False),
        (Capabilities(has_cache=True), False),
        (Capabilities(hidden_layers=(3,)), False),
        (Capabilities(top_k=8), False),
    ],
)
def test_who_needs_only_text(capabilities: Capabilities, expected: bool) -> None:
    assert is_text_only(capabilities) is expected


def test_an_overlong_draft_is_a_defect() -> None:
    class Chatty(ScriptedProposer):
        def propose(self, asks: Sequence[Ask]) -> list[Draft]:
            return [Draft(ask.sequence, (1, 2, 3), proposer=self.name) for ask in asks]

    with pytest.raises(RuntimeError, match="with 3 tokens"):
        replay_answer(Chatty([]), looping("a", "copy", 9), 2, 63)
