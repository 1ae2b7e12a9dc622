"""The contract of `Proposer`, on random tokens that repeat themselves often enough to be worth a guess."""

from collections.abc import Callable
from random import Random

import numpy as np

from paceline.acceptance.base import check_parents
from paceline.proposers.base import Ask, Draft, Proposer
from paceline.testing.ensure import ensure, ensure_raises

Guess = tuple[tuple[int, ...], tuple[int, ...], int | None]  # what must not differ when asked twice


def check_proposer(factory: Callable[[], Proposer], vocab_size: int, *, num_rounds: int = 30, seed: int = 0) -> None:
    """Put proposers made by `factory`, which declare no evidence, through the life of sequences."""
    random = Random(seed)
    for _ in range(num_rounds):
        context = [random.randrange(min(vocab_size, 4)) for _ in range(random.randint(1, 40))]
        _check_drafts(factory(), context, vocab_size)
        _check_growth(factory, context, random)
        _check_isolation(factory, context, random)
    _check_life(factory())


def _ask(proposer: Proposer, sequence: int, num_tokens: int) -> Guess:
    (draft,) = proposer.propose([Ask(sequence, num_tokens)])
    return draft.tokens, draft.parents, draft.match_length


def _check_drafts(proposer: Proposer, context: list[int], vocab_size: int) -> None:
    ensure(bool(proposer.name) and proposer.name != "off", "a proposer has a name, and not 'off'")
    proposer.start(3, context, "")
    proposer.start(8, context[::-1], "")
    for num_tokens in (0, 1, 2, 5, 12):
        asks = [Ask(8, num_tokens), Ask(3, num_tokens)]
        drafts = proposer.propose(asks)
        ensure([draft.sequence for draft in drafts] == [8, 3], "one draft for each ask, in order")
        for draft in drafts:
            _check_draft(proposer, draft, num_tokens, vocab_size)
        again = proposer.propose(asks)
        for first, second in zip(drafts, again, strict=True):
            is_same = (first.tokens, first.parents) == (second.tokens, second.parents)
            ensure(is_same or proposer.capabilities.is_sampled, "asking twice gives the same drafts")


def _check_draft(proposer: Proposer, draft: Draft, num_tokens: int, vocab_size: int) -> None:
    ensure(len(draft.tokens) <= num_tokens, f"asked for {num_tokens} tokens, got {len(draft.tokens)}")
    ensure(all(0 <= token < vocab_size for token in draft.tokens), "draft tokens are in the vocabulary")
    ensure(draft.proposer == proposer.name, "a draft names its proposer")
    ensure(len(draft.margins) in (0, len(draft.tokens)), "one margin for each token, or none")
    if draft.parents:
        ensure(proposer.capabilities.can_tree, "only a proposer that says so may branch")
        ensure(len(draft.parents) == len(draft.tokens), "every token of a tree names its parent")
        check_parents(draft.parents)
    ensure((draft.q is not None) == (proposer.capabilities.is_sampled and bool(draft.tokens)), "q for sampled drafts")
    if draft.q is not None:
        ensure(draft.q.q.shape == (len(draft.tokens), vocab_size), "q has one row for each token")
        ensure(bool(np.allclose(draft.q.q.sum(axis=1), 1.0, rtol=0, atol=1e-12)), "rows of q sum to 1")


def _check_growth(factory: Callable[[], Proposer], context: list[int], random: Random) -> None:
    """A context told at once or piece by piece gives the same drafts, whatever was asked in between."""
    whole, grown = factory(), factory()
    if whole.capabilities.is_sampled:
        return
    whole.start(0, context, "")
    begin = random.randint(1, len(context))
    grown.start(0, context[:begin], "")
    while begin < len(context):
        end = min(len(context), begin + random.randint(1, 4))
        _ask(grown, 0, 4)
        grown.extend(0, context[begin:end])
        begin = end
    ensure(_ask(whole, 0, 6) == _ask(grown, 0, 6), "how a context arrived does not matter")


def _check_isolation(factory: Callable[[], Proposer], context: list[int], random: Random) -> None:
    """Sequences of another namespace do not show in a draft, nor does one that was finished or reset."""
    alone, beside = factory(), factory()
    if alone.capabilities.is_sampled:
        return
    alone.start(0, context, "mine")
    other = [random.randrange(4) for _ in range(20)]
    beside.start(1, [*context, *other], "theirs")
    beside.start(0, context, "mine")
    ensure(_ask(alone, 0, 6) == _ask(beside, 0, 6), "another namespace does not show in a draft")
    beside.extend(1, other)
    beside.finish(1)
    ensure(_ask(alone, 0, 6) == _ask(beside, 0, 6), "another namespace's end does not show in a draft")
    beside.reset()
    beside.start(0, context, "mine")
    ensure(_ask(alone, 0, 6) == _ask(beside, 0, 6), "nothing outlives a reset")


def _check_life(proposer: Proposer) -> None:
    proposer.finish(5)
    proposer.start(5, (1, 2, 3), "")
    ensure_raises(ValueError, lambda: proposer.start(5, (1,), ""), "a sequence is started once")
    proposer.finish(5)
    proposer.start(5, (1, 2), "")
    proposer.reset()
    proposer.start(5, (1, 2), "")
    ensure(proposer.propose([]) == [], "no asks, no drafts")
