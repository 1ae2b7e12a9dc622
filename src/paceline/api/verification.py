"""Verification of speculation against the model itself: the work behind a certificate.

Plain decoding, one sequence at a time, is run to its end first. Then all requests go to the engine with speculation at
once, which batches them, forks their prompts and reuses what they have in common, so that its text is tried under load.
The target's distributions are computed last. Each has the runtime to itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from paceline.acceptance import AcceptanceRule
from paceline.acceptance.noise import sample_seed
from paceline.acceptance.processors import Encode
from paceline.api.target_laws import TargetLaws
from paceline.api.watched_rule import WatchedRule
from paceline.certificate import (
    Certificate,
    ComparisonTally,
    Difference,
    DraftCounts,
    FailedAnswer,
    FitTally,
    first_difference,
)
from paceline.checks import check_integer, check_number
from paceline.engine import Engine, FinishReason, Request
from paceline.errors import UsageError
from paceline.models import Progress
from paceline.runtime.base import Runtime
from paceline.sampling_params import SamplingParams
from paceline.telemetry import SpeculationStats

DEFAULT_FALSE_ALARM_RATE = 1e-6
MIN_SAMPLED_TOKENS = 3  # the first comes without a draft, and what follows a draft needs room too
MAX_SAMPLES = 10_000
LOSSY = "is lossy by design: there is nothing to certify"


@dataclass(frozen=True, slots=True)
class Trial:
    """`params`: of every request; their `seed`, 0 for None, keys all answers, each with a sample seed of its own.
    `num_samples`: answers to each prompt. `false_alarm_rate`: how often correct speculation may be blamed, for tests of
    distributions. `numerics`: margin in logits up to which another token than plain decoding's is put down to rounding;
    0 for a row-invariant runtime. Raises UsageError for what is out of range.
    """

    params: SamplingParams
    num_samples: int = 1
    false_alarm_rate: float = DEFAULT_FALSE_ALARM_RATE
    numerics: float = 0.0

    def __post_init__(self) -> None:
        check_integer("num_samples", self.num_samples, 1, MAX_SAMPLES)
        if self.num_samples > 1 and self.params.temperature == 0:
            raise UsageError(
                f"num_samples is {self.num_samples} at temperature 0, where all samples of a prompt are the same; "
                "expected 1"
            )
        if self.params.n != 1:
            raise UsageError(f"n is {self.params.n}; expected 1, and num_samples answers to each prompt")
        check_number("false_alarm_rate", self.false_alarm_rate, 1e-12, 0.1)
        check_number("numerics", self.numerics, 0, 10)

    def compares_tokens(self, rule: AcceptanceRule) -> bool:
        """Whether the tokens have to be those of plain decoding, as under every exact rule at temperature 0; otherwise
        their distribution is tested.

        Raises UsageError for a rule that keeps neither, for answers that are too short to tell, and for what has no
        part in the judgement.
        """
        if not rule.is_lossless:
            raise UsageError(f"the rule {rule.name!r} {LOSSY}")
        if rule.is_token_identical or self.params.temperature == 0:
            if self.false_alarm_rate != DEFAULT_FALSE_ALARM_RATE:
                raise UsageError(
                    f"false_alarm_rate is {self.false_alarm_rate:g}, but tokens are compared, which raises no false "
                    "alarm; leave it out"
                )
            return True
        if self.numerics:
            raise UsageError(
                f"numerics is {self.numerics:g}, but distributions are tested, not tokens compared; leave it out"
            )
        length = self.params.max_tokens
        if length is not None and length < MIN_SAMPLED_TOKENS:
            raise UsageError(
                f"max_tokens is {length}; expected at least {MIN_SAMPLED_TOKENS} under the rule {rule.name!r}: "
                "a shorter answer has no drafted token"
            )
        return False


@dataclass(frozen=True, slots=True)
class Parties:
    """`candidate` decodes with speculation under `rule`, `plain` without, one sequence at a time, both over `runtime`
    and with these ids. `watched` is the rule of the candidate, `rule` the one inside; `stats` is told of every step.
    """

    runtime: Runtime
    plain: Engine
    candidate: Engine
    rule: AcceptanceRule
    watched: WatchedRule
    stats: SpeculationStats
    eos_ids: frozenset[int] = frozenset()
    banned_ids: frozenset[int] = frozenset()
    encode: Encode | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    sequence: int
    tokens: tuple[int, ...]
    error: str | None


class Verification:
    """Answers are counted from 0: answer i is sample i % num_samples of prompt i // num_samples."""

    def __init__(self, parties: Parties, prompts: Iterable[Sequence[int]], trial: Trial, progress: Progress) -> None:
        """Raises UsageError as `Trial.compares_tokens` does."""
        self._parties, self._trial, self._progress = parties, trial, progress
        self.compares_tokens = trial.compares_tokens(parties.rule)
        params = trial.params
        seed = params.seed if params.seed is not None else 0
        each = [tuple(prompt) for prompt in prompts for _ in range(trial.num_samples)]
        self._requests = [Request(ids, params, sample_seed=sample_seed(seed, i)) for i, ids in enumerate(each)]
        self._comparison, self._fit = ComparisonTally(), FitTally(seed)
        self._different: list[tuple[int, _Answer, _Answer, int]] = []  # whose margins are to be computed
        self._failed: list[FailedAnswer] = []

    def run(self) -> None:
        """Once. A KeyboardInterrupt leaves what was found until then."""
        if self.compares_tokens:
            self._compare()
        else:
            self._test_fit()

    def certificate(self, *, is_interrupted: bool = False) -> Certificate:
        """What was found, by a run that has ended or was interrupted."""
        self._judge_differences()
        stats, trial = self._parties.stats, self._trial
        drafts = DraftCounts(
            stats.num_drafts, stats.num_draft_tokens, stats.num_accepted_tokens, stats.mean_acceptance_length
        )
        return Certificate(
            drafts,
            self._comparison.result() if self.compares_tokens else None,
            None if self.compares_tokens else self._fit.result(trial.false_alarm_rate),
            tuple(self._failed),
            trial.numerics,
            is_interrupted,
        )

    def _compare(self) -> None:
        plain = dict(self._answers("Decoding plainly", self._parties.plain, shares_prompts=False))
        for number, found in self._answers("Decoding with drafts", self._parties.candidate, shares_prompts=True):
            expected = plain[number]
            error = expected.error if expected.error is not None else found.error
            index = first_difference(expected.tokens, found.tokens)
            if error is not None:
                self._failed.append(FailedAnswer(number, error))
            elif index is not None:
                self._different.append((number, expected, found, index))
            else:
                self._comparison.add_equal(len(found.tokens))
        self._judge_differences()

    def _judge_differences(self) -> None:
        """Their margins can be computed only when the engines are done: the runtime's pages are needed."""
        laws = self._target_laws()
        self._different.sort(key=lambda different: different[0], reverse=True)
        while self._different:
            number, expected, found, index = self._different[-1]
            ours, others = (answer.tokens[index : index + 1] for answer in (expected, found))
            path = (*expected.tokens[:index], *(ours or others)[:1])
            other = others[0] if others else None
            near = laws.closeness(self._requests[number], path, other)
            is_excused = bool(ours) and max(near.margin, near.gap) <= self._trial.numerics
            self._comparison.add_different(
                Difference(number, index, ours[0] if ours else None, other, near.margin, is_excused)
            )
            self._different.pop()

    def _test_fit(self) -> None:
        answers = list(self._answers("Decoding with drafts", self._parties.candidate, shares_prompts=True))
        laws = self._target_laws()
        with _Stage(self._progress, "Testing samples", len(answers)) as stage:
            for number, answer in sorted(answers, key=lambda numbered: numbered[0]):
                if answer.error is not None:
                    self._failed.append(FailedAnswer(number, answer.error))
                request = self._requests[number]
                drafted, begin = self._parties.watched.drafted.get(answer.sequence, {}), len(request.prompt)
                drafts = {position - begin: law for position, law in drafted.items()}
                self._fit.add(request.prompt, answer.tokens, laws.laws(request, answer.tokens), drafts)
                stage.advance()

    def _target_laws(self) -> TargetLaws:
        parties = self._parties
        return TargetLaws(parties.runtime, parties.banned_ids, parties.eos_ids, parties.encode)

    def _answers(self, description: str, engine: Engine, *, shares_prompts: bool) -> Iterator[tuple[int, _Answer]]:
        """Each answer by its number, as it ends. `shares_prompts`: samples of a prompt read it once."""
        under_way: dict[int, tuple[int, list[int]]] = {}
        first = 0
        for number, request in enumerate(self._requests):
            is_first = number % self._trial.num_samples == 0
            fork_of = first if shares_prompts and not is_first else None
            sequence = engine.add_request(replace(request, fork_of=fork_of))
            first = sequence if is_first else first
            under_way[sequence] = number, []
        with _Stage(self._progress, description, len(under_way)) as stage:
            while under_way:
                for output in engine.step():
                    number, tokens = under_way[output.sequence]
                    tokens += output.tokens
                    if output.finish_reason is None:
                        continue
                    del under_way[output.sequence]
                    is_error = output.finish_reason is FinishReason.ERROR
                    error = (output.error or "no reason is known") if is_error else None
                    yield number, _Answer(output.sequence, tuple(tokens), error)
                    stage.advance()


class _Stage:
    """A stage of the work on a progress bar."""

    def __init__(self, progress: Progress, description: str, total: int) -> None:
        self._progress, self._description, self._total, self._done = progress, description, total, 0

    def __enter__(self) -> "_Stage":
        self._progress.begin(self._description, self._total)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.end()

    def advance(self) -> None:
        self._done += 1
        self._progress.update(self._done)
