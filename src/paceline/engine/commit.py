"""From an acceptance outcome to what becomes real, in the one order that is safe.

accept → scan the new tokens for stops and limits, stop before limit → trim → only then cache, proposers, metrics and
the caller. Nothing behind a stop has ever been seen by anything but the acceptance rule.
"""

from collections.abc import Mapping, Sequence

from paceline.acceptance.base import Outcome
from paceline.cache.coordinator import CacheCoordinator
from paceline.engine.batch import BatchEntry, Logits
from paceline.engine.drafting import ProposerGroup
from paceline.engine.logprobs import TokenLogprobs, chain_logprobs
from paceline.engine.output import FinishReason
from paceline.engine.request import SequenceState
from paceline.engine.stops import StopMatch
from paceline.value import value


@value
class Commit:
    """What of one sequence's step becomes real.

    `path`: rows of its segment whose keys and values stay. `accepted`: the draft tokens among them, as indices into
    the draft. `tokens`: what is emitted, of which the first `num_draft` are accepted draft tokens. `num_accepted` and
    `num_discarded` count before and by the trim.
    """

    entry: BatchEntry
    path: Sequence[int]
    accepted: Sequence[int] = ()
    tokens: tuple[int, ...] = ()
    num_draft: int = 0
    num_accepted: int = 0
    num_discarded: int = 0
    finish_reason: FinishReason | None = None
    stop: StopMatch | None = None
    error: str | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()
    prompt_logprobs: tuple[TokenLogprobs, ...] = ()


def decide_all(
    entries: Sequence[BatchEntry], outcomes: Sequence[Outcome], logits: Mapping[int, Logits]
) -> list[Commit]:
    """One for each entry, in order. `logits`: of those that tell log-probabilities, by sequence."""
    by_sequence = {outcome.sequence: outcome for outcome in outcomes}
    return [decide(entry, by_sequence.get(entry.state.id), logits.get(entry.state.id)) for entry in entries]


def decide(entry: BatchEntry, outcome: Outcome | None, logits: Logits | None = None) -> Commit:
    """Scan and trim; changes nothing. `outcome` is None for a prompt chunk that does not reach the prompt's end.

    `logits`: the entry's rows from its `first_logits_row` on, where it tells log-probabilities.
    """
    prompt_logprobs = _prompt_logprobs(entry, logits)
    if outcome is None:
        return Commit(entry, range(entry.num_run), prompt_logprobs=prompt_logprobs)
    num, reason, stop = _end(entry.state, outcome)
    last = entry.num_run - 1  # the run's row with the newest token: row 0 of the outcome
    # The token that row i of the path decides is cached by row i + 1, so the newest emitted one never is.
    rows = outcome.path[:num]
    return Commit(
        entry=entry,
        path=() if entry.is_rerun else [*range(last), *[last + row for row in rows]],
        accepted=[row - 1 for row in rows[1:]],
        tokens=outcome.tokens[:num],
        num_draft=min(outcome.num_accepted, num),
        num_accepted=outcome.num_accepted,
        num_discarded=len(outcome.tokens) - num,
        finish_reason=reason,
        stop=stop,
        error=outcome.error if reason is FinishReason.ERROR else None,
        logprobs=_logprobs(entry, rows, outcome.tokens[:num], logits),
        prompt_logprobs=prompt_logprobs,
    )


def _end(state: SequenceState, outcome: Outcome) -> tuple[int, FinishReason | None, StopMatch | None]:
    """How many of the outcome's tokens are emitted, and why the sequence ends with them, if it does.

    Of several ends the first counts, and at the same token a stop before a limit. A text that its grammar completes is
    over whatever `min_tokens` says: nothing may follow.
    """
    tokens, num_output = outcome.tokens, state.num_output
    first = max(0, state.request.params.min_tokens - num_output)  # what comes before it cannot stop the answer
    stop = state.stops.find(tokens, first) if state.stops is not None and tokens else None
    num_left = min(state.max_tokens - num_output, stop.num_tokens if stop is not None else len(tokens))
    complete = state.grammar.num_until_complete(tokens) if state.grammar is not None else None
    num_left = num_left if complete is None else min(num_left, complete)
    for num, token in enumerate(tokens[:num_left], start=1):
        if token in state.stop_ids and num > first:
            return num, FinishReason.STOP, stop if stop is not None and stop.num_tokens == num else None
    if stop is not None and stop.num_tokens == num_left:
        return num_left, FinishReason.STOP, stop
    if complete == num_left:
        return num_left, FinishReason.STOP, None
    if num_left == state.max_tokens - num_output:
        return num_left, FinishReason.LENGTH, None
    return num_left, FinishReason.ERROR if outcome.error is not None else None, None


def _logprobs(
    entry: BatchEntry, rows: Sequence[int], tokens: Sequence[int], logits: Logits | None
) -> tuple[TokenLogprobs, ...]:
    num_top = entry.state.request.params.logprobs
    if num_top is None or logits is None:
        return ()
    newest = entry.num_run - 1 - entry.first_logits_row
    return chain_logprobs(logits, [newest + row for row in rows], tokens, num_top)


def _prompt_logprobs(entry: BatchEntry, logits: Logits | None) -> tuple[TokenLogprobs, ...]:
    """Of the tokens behind the rows of the run, as far as they are the prompt's and were not scored before."""
    state = entry.state
    num_top = state.request.params.prompt_logprobs
    if num_top is None or logits is None or not entry.is_scoring:
        return ()
    first = max(state.length, state.num_prompt_logprobs)
    end = min(state.length + entry.num_run, state.num_prompt - 1)
    indices = range(first, end)  # position i has the row that decides token i + 1
    return chain_logprobs(logits, [i - state.length for i in indices], [state.tokens[i + 1] for i in indices], num_top)


def apply(commit: Commit, cache: CacheCoordinator, proposers: ProposerGroup) -> None:
    """Make the commit real: cache first, then tokens, then proposers."""
    state, tokens = commit.entry.state, commit.tokens
    cache.commit(state.id, commit.path, len(state.tokens), commit.accepted)
    state.length += len(commit.path)
    state.tokens.extend(tokens)
    if commit.entry.is_scoring:
        state.num_prompt_logprobs = max(state.num_prompt_logprobs, state.length)
    cache.publish(state.id, state.tokens)
    if commit.finish_reason is not None:
        cache.release(state.id)
        proposers.finish(state.id)
    elif tokens:
        state.sampler.extend(tokens)
        if state.stops is not None:
            state.stops.extend(tokens)
        _follow(state, tokens, proposers)


def _follow(state: SequenceState, tokens: tuple[int, ...], proposers: ProposerGroup) -> None:
    state.is_decoding = True
    if state.is_followed:
        proposers.extend(state.id, tokens)
    else:
        proposers.start(state.id, state.tokens, state.request.namespace)
        state.is_followed = True
