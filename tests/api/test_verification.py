"""Verifications over tables: what is right is certified, and every planted fault is found and shown."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import ClassVar

import numpy as np
import pytest

from paceline.acceptance import (
    AcceptanceRule,
    BlockRule,
    Law,
    MatchRule,
    Outcome,
    RejectionRule,
    TypicalRule,
    Verification,
)
from paceline.api.verification import Parties, Trial
from paceline.api.verification import Verification as Verifying
from paceline.api.watched_rule import WatchedRule
from paceline.certificate import Certificate
from paceline.controller import FixedController, OffController
from paceline.engine import Engine, EngineOptions
from paceline.errors import UsageError
from paceline.models import SilentProgress
from paceline.proposers import Ask, Capabilities, Draft, DraftDistribution, Proposer
from paceline.runtime import Scores, Segment
from paceline.sampling_params import SamplingParams
from paceline.telemetry import SpeculationStats
from paceline.testing import ScriptedDraft, ScriptedProposer, TableModel, seeded_table

VOCAB_SIZE, END = 10, 0
DROPPED = 9
PROMPTS = [(1, 2, 3), (4, 5), (6, 7, 8, 9, 1, 2)]
SAMPLED = SamplingParams(max_tokens=14, temperature=1.0, seed=5)
TABLE = cache(seeded_table(VOCAB_SIZE, 3, 2))
DRAFT_TABLE = cache(seeded_table(VOCAB_SIZE, 4, 1))
DRAFT_LENGTH = 4


def guessed(context: tuple[int, ...], num_tokens: int) -> ScriptedDraft:
    """The likeliest tokens, but every third one."""
    tokens = list(context)
    for _ in range(num_tokens):
        order = np.argsort(TABLE(tuple(tokens)))
        tokens.append(int(order[-2 if sum(tokens) % 3 == 0 else -1]))
    return ScriptedDraft(tuple(tokens[len(context) :]))


class SampledProposer(Proposer):
    """Draws a chain from the draft table, mixed with the target's own law so that a fair part of it stands. `report`
    makes of its laws what it says of them."""

    name: ClassVar[str] = "sampled"
    capabilities: ClassVar[Capabilities] = Capabilities(is_sampled=True)

    def __init__(self, report: Callable[[Law], Law] = lambda law: law) -> None:
        self._report = report
        self._generator = np.random.default_rng(6)
        self._contexts: dict[int, list[int]] = {}

    def start(self, sequence: int, context: Sequence[int], namespace: str) -> None:  # noqa: ARG002
        self._contexts[sequence] = list(context)

    def extend(self, sequence: int, tokens: Sequence[int], evidence: object = None) -> None:  # noqa: ARG002
        self._contexts[sequence].extend(tokens)

    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        return [self._draft(ask) for ask in asks]

    def finish(self, sequence: int) -> None:
        self._contexts.pop(sequence, None)

    def reset(self) -> None:
        self._contexts.clear()

    def _draft(self, ask: Ask) -> Draft:
        tokens, laws = list(self._contexts[ask.sequence]), list[Law]()
        begin = len(tokens)
        for _ in range(ask.num_tokens):
            law = (softmax(TABLE(tuple(tokens))) + softmax(DRAFT_TABLE(tuple(tokens)))) / 2
            tokens.append(int(self._generator.choice(VOCAB_SIZE, p=law)))
            laws.append(self._report(law))
        q = DraftDistribution(np.array(laws).reshape(-1, VOCAB_SIZE))
        return Draft(ask.sequence, tuple(tokens[begin:]), q=q, proposer=self.name)


class Dropping(SampledProposer):
    """Ends a draft before its first 9, because it is one."""

    def _draft(self, ask: Ask) -> Draft:
        draft = super()._draft(ask)
        if DROPPED not in draft.tokens or draft.q is None:
            return draft
        end = draft.tokens.index(DROPPED)
        return replace(draft, tokens=draft.tokens[:end], q=DraftDistribution(draft.q.q[:end]))


def softmax(logits: np.ndarray) -> Law:
    weights = np.exp(logits.astype(np.float64))
    law: Law = weights / weights.sum()
    return law


def flattened(law: Law) -> Law:
    """Halfway to the law that knows nothing."""
    flat: Law = (law + 1 / VOCAB_SIZE) / 2
    return flat


def scripted() -> Proposer:
    return ScriptedProposer(guessed)


def verification(
    rule: AcceptanceRule,
    trial: Trial,
    make: Callable[[], Proposer] = scripted,
    runtime: TableModel | None = None,
    prompts: Sequence[Sequence[int]] = PROMPTS,
) -> Verifying:
    runtime = runtime if runtime is not None else model()
    stats, watched, proposer = SpeculationStats(), WatchedRule(rule), make()
    candidate = Engine(
        runtime,
        FixedController(proposer.name, DRAFT_LENGTH),
        [proposer],
        watched,
        eos_token_ids=[END],
        records=stats.add,
    )
    options = EngineOptions(max_num_seqs=1, reuses_prefixes=False)
    plain = Engine(runtime, OffController(), [], MatchRule(), eos_token_ids=[END], options=options)
    parties = Parties(runtime, plain, candidate, rule, watched, stats, eos_ids=frozenset([END]))
    return Verifying(parties, prompts, trial, SilentProgress())


def model() -> TableModel:
    return TableModel(TABLE, VOCAB_SIZE, num_padding=3, num_pages=40)


def certificate(rule: AcceptanceRule, trial: Trial, make: Callable[[], Proposer] = scripted) -> Certificate:
    verifying = verification(rule, trial, make)
    verifying.run()
    return verifying.certificate()


class Gullible(MatchRule):
    """Lets a rejected draft token stand, and the target's own come behind it, from position 8 on."""

    def accept(self, verification: Verification) -> Outcome:
        outcome = super().accept(verification)
        if verification.position < 8 or not verification.draft or outcome.num_accepted:
            return outcome
        return Outcome(verification.sequence, (0, 1), (verification.draft[0], *outcome.tokens[:1]))


class Generous(RejectionRule):
    """Lets every draft token stand that can come."""

    def accept_probability(self, p: Law, q: Law, token: int) -> float:  # noqa: ARG002
        return float(p[token] > 0)


class Reckless(RejectionRule):
    def accept_probability(self, p: Law, q: Law, token: int) -> float:  # noqa: ARG002
        return 1.0


class Unrepentant(RejectionRule):
    """Draws from all of p again where a draft token was rejected."""

    def residual(self, p: Law, q: Law, token: int) -> Law:  # noqa: ARG002
        return p


class UnrepentantBlock(BlockRule):
    def residual(self, p: Law, q: Law, token: int) -> Law:  # noqa: ARG002
        return p


@pytest.mark.parametrize("rule", [MatchRule(), RejectionRule(), BlockRule()], ids=lambda rule: rule.name)
def test_greedy_tokens_are_those_of_plain_decoding(rule: AcceptanceRule) -> None:
    found = certificate(rule, Trial(SamplingParams(max_tokens=20)))
    assert (found.verdict, found.statement, found.fit) == ("certified", "every token is that of plain decoding", None)
    assert found.comparison is not None
    assert (found.comparison.num_answers, found.comparison.num_differing, found.comparison.first) == (3, 0, None)
    assert found.comparison.num_tokens > 20
    assert 0 < found.drafts.num_accepted_tokens < found.drafts.num_draft_tokens


def test_sampled_tokens_under_match() -> None:
    found = certificate(MatchRule(), Trial(SAMPLED, num_samples=20))
    assert found.verdict == "certified"
    assert found.comparison is not None
    assert found.comparison.num_answers == 60


@pytest.mark.parametrize("params", [SamplingParams(max_tokens=20), SAMPLED], ids=["greedy", "sampled"])
def test_a_wrong_token_is_shown_with_its_margin(params: SamplingParams) -> None:
    found = certificate(Gullible(), Trial(params, num_samples=8 if params.temperature else 1))
    assert found.verdict == "failed"
    assert found.comparison is not None
    first = found.comparison.first
    assert first is not None
    assert first.expected != first.found
    assert first.margin > 0
    assert not first.is_excused
    assert len(PROMPTS[first.answer * len(PROMPTS) // (8 * 3 if params.temperature else 3)]) + first.index >= 8


@pytest.mark.parametrize("make", [scripted, SampledProposer])
@pytest.mark.parametrize("rule", [RejectionRule(), BlockRule()], ids=lambda rule: rule.name)
def test_the_right_distribution_is_certified(rule: AcceptanceRule, make: Callable[[], Proposer]) -> None:
    found = certificate(rule, Trial(SAMPLED, num_samples=120, false_alarm_rate=1e-4), make)
    assert found.verdict == "certified", found.statement
    assert found.fit is not None
    assert found.comparison is None
    assert [test.name for test in found.fit.tests] == [
        "acceptance",
        "drafted",
        "likelihood",
        "recency",
        "identity",
        "serial",
    ]
    assert "once in 10,000 times at most" in found.statement


@pytest.mark.parametrize(
    ("rule", "make", "num_samples"),
    [
        (Generous(), scripted, 60),
        (Generous(), SampledProposer, 60),
        (Unrepentant(), scripted, 60),
        (Unrepentant(), SampledProposer, 120),
        (UnrepentantBlock(), scripted, 60),
        (RejectionRule(), partial(SampledProposer, flattened), 240),
        (RejectionRule(), Dropping, 240),
        (BlockRule(), partial(SampledProposer, flattened), 500),  # only the first token of its steps is seen closely
    ],
    ids=[
        "generous",
        "generous sampled",
        "residual",
        "residual sampled",
        "block residual",
        "wrong q",
        "dropped",
        "block wrong q",
    ],
)
def test_a_wrong_distribution_is_found(rule: AcceptanceRule, make: Callable[[], Proposer], num_samples: int) -> None:
    found = certificate(rule, Trial(SAMPLED, num_samples=num_samples), make)
    assert found.verdict == "failed"
    assert found.fit is not None
    assert any(test.has_failed for test in found.fit.tests)


def test_a_token_that_cannot_come_is_shown() -> None:
    found = certificate(Reckless(), Trial(SamplingParams(max_tokens=14, temperature=1.0, top_k=1, seed=2), 20))
    assert found.verdict == "failed"
    assert "token" in found.faults[0]
    assert found.fit is not None
    assert found.fit.first_impossible is not None
    assert found.fit.num_impossible > 0


class Rounding(TableModel):
    """Lossless up to numerics: with other rows beside it a row is off by a little."""

    def forward(self, segments: Sequence[Segment]) -> Scores:
        scores = super().forward(segments)
        if sum(len(segment.tokens) for segment in segments) > 1:
            scores.logits[:, : VOCAB_SIZE // 2] += np.float32(0.02)
        return scores


def near_ties(seen: tuple[int, ...]) -> np.ndarray:
    logits = TABLE(seen).copy()
    low, high = int(np.argmax(logits[: VOCAB_SIZE // 2])), VOCAB_SIZE // 2 + int(np.argmax(logits[VOCAB_SIZE // 2 :]))
    logits[high] = max(logits[low], logits[high]) + 1
    logits[low] = logits[high] - np.float32(0.01)  # the runner-up, but for rounding
    return logits


@pytest.mark.parametrize(("numerics", "verdict"), [(0.0, "failed"), (0.005, "failed"), (0.05, "certified")])
def test_what_numerics_may_move_is_judged_by_its_margin(numerics: float, verdict: str) -> None:
    runtime = Rounding(near_ties, VOCAB_SIZE, num_pages=40)
    verifying = verification(MatchRule(), Trial(SamplingParams(max_tokens=12), numerics=numerics), runtime=runtime)
    verifying.run()
    found = verifying.certificate()
    assert found.verdict == verdict, found.statement
    assert found.comparison is not None
    assert found.comparison.first is not None
    assert found.comparison.first.margin == pytest.approx(0.01, abs=0.021)
    assert ("up to numerics" in found.statement) == (verdict == "certified")


def test_without_drafts_nothing_is_certified() -> None:
    found = certificate(MatchRule(), Trial(SamplingParams(max_tokens=8)), partial(ScriptedProposer, []))
    assert (found.verdict, found.faults) == ("inconclusive", [])
    assert "no draft was ever tried" in found.statement
    found = certificate(RejectionRule(), Trial(SAMPLED, num_samples=2))
    assert found.verdict == "inconclusive"
    assert "ask for more samples" in found.statement


def test_answers_that_fail_are_no_certificate() -> None:
    runtime = TableModel(TABLE, VOCAB_SIZE, num_pages=40, nan_at=[6])
    for rule, params in ((MatchRule(), SamplingParams(max_tokens=9)), (RejectionRule(), SAMPLED)):
        verifying = verification(rule, Trial(params), runtime=runtime)
        verifying.run()
        found = verifying.certificate()
        assert found.verdict == "failed"
        assert "ended in an error: the logits that decide position 7 are not finite" in found.statement


def test_an_interrupt_leaves_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    verifying, steps = verification(MatchRule(), Trial(SamplingParams(max_tokens=12))), [0]

    def interrupted(self: SpeculationStats, record: object) -> None:  # noqa: ARG001
        steps[0] += 1
        if steps[0] == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(verifying._parties.candidate, "_records", partial(interrupted, None))
    with pytest.raises(KeyboardInterrupt):
        verifying.run()
    found = verifying.certificate(is_interrupted=True)
    assert (found.verdict, found.is_interrupted) == ("inconclusive", True)
    assert found.statement == "it was interrupted"


@pytest.mark.parametrize(
    ("rule", "options", "says"),
    [
        (TypicalRule(allow_lossy=True), {"params": SAMPLED}, "lossy by design: there is nothing to certify"),
        (
            RejectionRule(),
            {"params": SamplingParams(max_tokens=2, temperature=1.0)},
            "max_tokens is 2; expected at least 3",
        ),
        (MatchRule(), {"params": SamplingParams(), "num_samples": 2}, "num_samples is 2 at temperature 0"),
        (MatchRule(), {"params": SAMPLED, "num_samples": 0}, "num_samples is 0"),
        (MatchRule(), {"params": SamplingParams(temperature=1.0, n=2)}, "n is 2"),
        (MatchRule(), {"params": SAMPLED, "false_alarm_rate": 0.0}, "false_alarm_rate is 0.0"),
        (MatchRule(), {"params": SAMPLED, "numerics": -1}, "numerics is -1"),
        (
            MatchRule(),
            {"params": SAMPLED, "false_alarm_rate": 1e-3},
            "false_alarm_rate is 0.001, but tokens are compared",
        ),
        (RejectionRule(), {"params": SAMPLED, "numerics": 0.1}, "numerics is 0.1, but distributions are tested"),
    ],
)
def test_what_cannot_be_certified(rule: AcceptanceRule, options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        verification(rule, Trial(**options))  # type: ignore[arg-type]
