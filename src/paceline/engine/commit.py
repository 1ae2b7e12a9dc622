"""From an acceptance outcome to what becomes real, in the one order that is safe.

accept → scan the new tokens for stops and limits, stop before limit → trim → only then cache, proposers, metrics and
the caller. Nothing behind a stop has ever been seen by anything but the acceptance rule.
"""

from collections.abc import Sequence

from paceline.acceptance.base import Outcome
from paceline.cache.base import SequenceCache
from paceline.engine.batch import BatchEntry
from paceline.engine.drafting import ProposerGroup
from paceline.engine.request import FinishReason, SequenceState
from paceline.value import value


@value
class Commit:
    """What of one sequence's step becomes real.

    `path`: rows of its segment whose keys and values stay. `tokens`: what is emitted, of which the first `num_draft`
    are accepted draft tokens. `num_accepted` and `num_discarded` count before and by the trim.
    """

    entry: BatchEntry
    path: Sequence[int]
    tokens: tuple[int, ...] = ()
    num_draft: int = 0
    num_accepted: int = 0
    num_discarded: int = 0
    finish_reason: FinishReason | None = None


def decide(entry: BatchEntry, outcome: Outcome | None) -> Commit:
    """Scan and trim; changes nothing. `outcome` is None for a prompt chunk that does not reach the prompt's end."""
    if outcome is None:
        return Commit(entry, range(entry.num_run))
    tokens, reason = _trim(entry.state, outcome)
    last = entry.num_run - 1  # the run's row with the newest token: row 0 of the outcome
    # The token that row i of the path decides is cached by row i + 1, so the newest emitted one never is.
    path = [*range(last), *[last + row for row in outcome.path[: len(tokens)]]]
    return Commit(
        entry=entry,
        path=path,
        tokens=tokens,
        num_draft=min(outcome.num_accepted, len(tokens)),
        num_accepted=outcome.num_accepted,
        num_discarded=len(outcome.tokens) - len(tokens),
        finish_reason=reason,
    )


def _trim(state: SequenceState, outcome: Outcome) -> tuple[tuple[int, ...], FinishReason | None]:
    num_left = state.max_tokens - state.num_output
    for num, token in enumerate(outcome.tokens, start=1):
        if token in state.stop_ids:
            return outcome.tokens[:num], FinishReason.STOP
        if num == num_left:
            return outcome.tokens[:num], FinishReason.LENGTH
    return outcome.tokens, FinishReason.ERROR if outcome.is_error else None


def apply(commit: Commit, cache: SequenceCache, proposers: ProposerGroup) -> None:
    """Make the commit real: cache first, then tokens, then proposers."""
    state, was_prefilling = commit.entry.state, commit.entry.is_prefill
    cache.commit(state.id, commit.path)
    state.length += len(commit.path)
    state.tokens.extend(commit.tokens)
    if commit.finish_reason is not None:
        cache.release(state.id)
        proposers.finish(state.id)
    elif was_prefilling and commit.tokens:
        proposers.start(state.id, state.tokens, state.request.namespace)
    elif commit.tokens:
        proposers.extend(state.id, commit.tokens)
