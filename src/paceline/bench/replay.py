"""Scores proposers against recorded answers, without a target forward.

Under the rule `match` an answer does not depend on what was drafted. So a proposer can be led along a recorded one,
step by step as the engine would, at every K. The rule itself judges the drafts, with a sampler that reads from the
record, and the definitions are those of live runs: the counts are equal to the last token, for an answer that runs
alone. Beside other requests an engine may have fewer rows or pages to draft into, and it may preempt; a live run shows
that.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance import Law, MatchRule, Verification
from paceline.api.speculation import MAX_SPECULATIVE_TOKENS
from paceline.bench.base import ALL, Counts
from paceline.bench.figures.acceptance import Acceptance
from paceline.bench.forwards import forward_time
from paceline.bench.recordings import Recording, Recordings
from paceline.bench.result import ReplayRun
from paceline.checks import check_integer
from paceline.controller import OFF
from paceline.engine.drafting import check_draft
from paceline.errors import UsageError
from paceline.proposers import PROPOSERS, Ask, Capabilities, Draft, Proposer, create_proposer
from paceline.telemetry import Reason, SequenceStep, SpeculationStats

_BEHIND_THE_END = -1  # no draft token is equal to it


@dataclass(frozen=True, slots=True)
class Replayed:
    """`draft_seconds`: what the proposer took to propose and to follow the answer; its start, which a live run has
    before the first token arrives, is not in it."""

    counts: Counts
    num_tokens: int
    draft_seconds: float


def is_text_only(capabilities: Capabilities) -> bool:
    """Whether drafts follow from the committed tokens alone: no model, no evidence, nothing drawn."""
    needs = (capabilities.is_sampled, capabilities.has_cache, capabilities.hidden_layers, capabilities.top_k)
    return not any(needs)


def replay(recordings: Recordings, proposers: Sequence[str], ks: Sequence[int]) -> list[ReplayRun]:
    """For each proposer and number of draft tokens K in `ks`, each task class and all of them together.

    Without T(n) there is no prediction. A proposer that keeps something of one answer for the next one sees them in
    their order. Raises UsageError for a proposer that needs more than text, and for a K that is below 1 or needs a
    greater n than T(n) was measured for.
    """
    forward_ms = recordings.forward_ms
    for k in ks:
        _check_k(k, recordings.max_draft_tokens, forward_ms)
    runs = []
    for name in proposers:
        for k in ks:
            proposer = create_proposer(name)
            _check_text_only(proposer)
            replayed = [
                (answer.task_class, replay_answer(proposer, answer, k, recordings.max_draft_tokens, sequence))
                for sequence, answer in enumerate(recordings.answers)
            ]
            for task_class in (*recordings.task_classes, ALL):
                chosen = [each for of, each in replayed if task_class in (of, ALL)]
                runs.append(_run(task_class, name, k, chosen, forward_ms))
    return runs


def replay_answer(
    proposer: Proposer,
    recording: Recording,
    num_speculative_tokens: int,
    max_draft_tokens: int,
    sequence: int = 0,
) -> Replayed:
    """Lead `proposer` along the answer. `max_draft_tokens`: the most that a forward of the engine can check.

    Raises UsageError for a proposer that needs more than text.
    """
    _check_text_only(proposer)
    try:
        return _lead(proposer, recording, num_speculative_tokens, max_draft_tokens, sequence)
    finally:
        proposer.finish(sequence)


def _lead(proposer: Proposer, recording: Recording, k: int, max_draft_tokens: int, sequence: int) -> Replayed:
    """The prefill's forward gives the first token. A proposer never hears of those that end an answer."""
    answer = recording.answer_ids
    judge = _Judge(recording, sequence)
    stats, drafted, seconds = SpeculationStats(), Counter[int](), 0.0
    num = 1
    if num < len(answer):
        proposer.start(sequence, (*recording.prompt_ids, answer[0]), "")
    while num < len(answer):
        room = min(k, recording.max_tokens - num - 1, max_draft_tokens)
        started = perf_counter()
        draft = _propose(proposer, Ask(sequence, room))
        seconds += perf_counter() - started
        step = judge.step(num, room, draft)
        stats.add_sequence(step)
        drafted[step.drafted] += 1
        num += step.emitted
        if num < len(answer):
            started = perf_counter()
            proposer.extend(sequence, answer[num - step.emitted : num])
            seconds += perf_counter() - started
    return Replayed(Counts.of(stats, drafted), len(answer), seconds)


def _propose(proposer: Proposer, ask: Ask) -> Draft:
    if ask.num_tokens < 1:
        return Draft(ask.sequence)
    (draft,) = proposer.propose([ask])
    check_draft(draft, ask)
    return draft


class _Judge:
    """The rule `match` over one recorded answer."""

    def __init__(self, recording: Recording, sequence: int) -> None:
        self._recording = recording
        self._sequence = sequence
        self._rule = MatchRule()
        self._sampler = _RecordedSampler(len(recording.prompt_ids), recording.answer_ids)

    def step(self, num_output: int, planned: int, draft: Draft) -> SequenceStep:
        """The step behind the first `num_output` tokens of the answer."""
        num_drafted = len(draft.tokens)
        outcome = self._rule.accept(
            Verification(
                sequence=self._sequence,
                logits=np.empty((1 + num_drafted, 0), np.float32),
                draft=draft.tokens,
                parents=draft.parents or tuple(range(-1, num_drafted - 1)),
                position=len(self._recording.prompt_ids) + num_output,
                sampler=self._sampler,
            )
        )
        emitted = min(len(outcome.tokens), len(self._recording.answer_ids) - num_output)
        return SequenceStep(
            sequence=self._sequence,
            proposer=draft.proposer or OFF,
            planned=max(planned, 0),
            drafted=num_drafted,
            accepted=outcome.num_accepted,
            emitted=emitted,
            discarded=len(outcome.tokens) - emitted,
            reason=Reason.FIXED if num_drafted else Reason.NO_MATCH,
        )


class _RecordedSampler:
    """Draws what was drawn when the answer was recorded; behind its end a token that nothing matches.

    What a live run would draw there is trimmed: it counts neither as emitted nor as accepted.
    """

    def __init__(self, num_prompt: int, answer: Sequence[int]) -> None:
        self._num_prompt = num_prompt
        self._answer = answer

    @property
    def seed(self) -> int:
        return 0

    def sample(self, logits: NDArray[np.float32], position: int, drafted: Sequence[int] = ()) -> int:  # noqa: ARG002
        index = position - self._num_prompt
        return self._answer[index] if index < len(self._answer) else _BEHIND_THE_END

    def law(self, logits: NDArray[np.float32], position: int, drafted: Sequence[int] = ()) -> Law:
        raise NotImplementedError("a recorded answer holds tokens, not the distributions that they came from")

    def extend(self, tokens: Sequence[int]) -> None:
        pass


def _run(
    task_class: str, proposer: str, k: int, replayed: Sequence[Replayed], forward_ms: Mapping[int, float]
) -> ReplayRun:
    counts = sum([each.counts for each in replayed], Counts())
    acceptance = Acceptance.of(counts)
    return ReplayRun(
        task_class=task_class,
        proposer=proposer,
        num_speculative_tokens=k,
        num_answers=len(replayed),
        num_tokens=sum([each.num_tokens for each in replayed]),
        mean_acceptance_length=acceptance.mean_acceptance_length,
        draft_acceptance_rate=acceptance.draft_acceptance_rate,
        acceptance_by_position=acceptance.acceptance_by_position,
        predicted_speedup=_speedup(counts, sum([each.draft_seconds for each in replayed]), forward_ms),
    )


def _speedup(counts: Counts, draft_seconds: float, forward_ms: Mapping[int, float]) -> float | None:
    """Plain decoding's forwards over those of the steps and the proposer's time. What the host does between forwards
    is left out on both sides; it does more of that for each token where nothing is drafted."""
    if not forward_ms or not counts.num_target_steps:
        return None
    plain = counts.num_emitted * forward_time(forward_ms, 1)
    speculative = sum([num * forward_time(forward_ms, 1 + length) for length, num in counts.drafted.items()])
    return plain / (speculative + draft_seconds * 1e3)


def replayable_ks(recordings: Recordings) -> list[int]:
    """Every K that a user can ask for and of which T(n) was measured, if any of it was."""
    most = max(recordings.forward_ms, default=MAX_SPECULATIVE_TOKENS + 1) - 1
    return list(range(1, min(most, MAX_SPECULATIVE_TOKENS) + 1))


def text_only_proposers() -> list[str]:
    """The names of those that can be replayed."""
    return [name for name in PROPOSERS if is_text_only(create_proposer(name).capabilities)]


def _check_text_only(proposer: Proposer) -> None:
    if not is_text_only(proposer.capabilities):
        raise UsageError(
            f"the proposer {proposer.name!r} needs more than the text of an answer; it cannot be replayed, run it live"
        )


def _check_k(k: int, max_draft_tokens: int, forward_ms: Mapping[int, float]) -> None:
    check_integer("num_speculative_tokens", k, 1)
    if forward_ms and 1 + min(k, max_draft_tokens) > max(forward_ms):
        raise UsageError(
            f"num_speculative_tokens is {k}, but T(n) was measured up to {max(forward_ms)} rows; "
            f"expected at most {max(forward_ms) - 1}"
        )
