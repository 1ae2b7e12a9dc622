"""The law of what a rule emits, summed over everything that can happen: drafts, tests, residuals, bonus tokens.

Nothing is sampled and no rule is written a second time: the product's own code runs once for each way in which its
chances can fall, and the ways are weighed. A chance is a uniform with a key, and what has the same key is the same
number, so that noise which is shared by mistake is shared here too.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from paceline.acceptance import AcceptanceRule, Law, NonFiniteLogitsError, Outcome, RejectionRule, Verification, without

T = TypeVar("T")
Tokens = tuple[int, ...]
Row = NDArray[np.float32]
Processed = Callable[[Row, Tokens], Law]  # raw logits and all tokens before them, to the processed p


@lru_cache(None)
def random_law(vocab_size: int, *key: int) -> Law:
    """A distribution that `key` alone decides."""
    law = np.random.default_rng(key).dirichlet(np.full(vocab_size, 0.7))
    law.flags.writeable = False
    return law


class Chances:
    """Uniforms in (0, 1), each known only as an interval that gets smaller with every question about it."""

    def __init__(
        self, forced: Sequence[bool] = (), known: Mapping[Hashable, tuple[float, float]] | None = None
    ) -> None:
        self._answers = list(forced)
        self._num_forced = len(forced)
        self._num_asked = 0
        self.probability = 1.0
        self.known = dict(known or {})  # [low, high)

    def is_below(self, key: Hashable, threshold: float) -> bool:
        low, high = self.known.get(key, (0.0, 1.0))
        if not low < threshold < high:
            return threshold >= high
        if self._num_asked == len(self._answers):
            self._answers.append(True)
        answer = self._answers[self._num_asked]
        self._num_asked += 1
        self.known[key] = (low, threshold) if answer else (threshold, high)
        self.probability *= ((threshold - low) if answer else (high - threshold)) / (high - low)
        return answer

    def draw(self, key: Hashable, law: Law) -> int:
        """By inverting the distribution function, over tokens that have a probability."""
        support = np.flatnonzero(law).tolist()
        total = 0.0
        for token in support[:-1]:
            total += float(law[token])
            if self.is_below(key, total):
                return int(token)
        return int(support[-1])

    def alternatives(self) -> list[list[bool]]:
        """Answers that were given here for the first time, each turned round."""
        return [[*self._answers[:i], False] for i in range(self._num_forced, self._num_asked)]


def explore(
    program: Callable[[Chances], T], known: Mapping[Hashable, tuple[float, float]] | None = None
) -> Iterator[tuple[Chances, T]]:
    """Every way in which `program` can go, with its chances; their probabilities, given what is `known`, sum to 1."""
    waiting: list[list[bool]] = [[]]
    while waiting:
        chances = Chances(waiting.pop(), known)
        yield chances, program(chances)
        waiting += chances.alternatives()


class Target:
    """A model over a few tokens: logits from a seed for every prefix, and the processors behind them."""

    def __init__(self, vocab_size: int, seed: int, processed: Processed, scale: float = 1.5) -> None:
        self.vocab_size = vocab_size
        self._seed = seed
        self._scale = scale
        self.processed = processed
        self.logits = lru_cache(None)(self._logits)
        self.law = lru_cache(None)(self._law)

    def _logits(self, prefix: Tokens) -> Row:
        generator = np.random.default_rng((self._seed, len(prefix), *prefix))
        return (self._scale * generator.standard_normal(self.vocab_size)).astype(np.float32)

    def _law(self, prefix: Tokens) -> Law:
        law = self.processed(self.logits(prefix), prefix)
        law.flags.writeable = False  # no rule may change it
        return law

    def law_behind(self, committed: Tokens, drafted: Tokens) -> Law:
        """What a sampler that was told of `committed` says of the row behind `drafted`."""
        return self.law((*committed, *drafted))

    def joint(self, sequence: Tokens, begin: int = 0) -> float:
        """Probability of `sequence` given its first `begin` tokens. What cannot come up is not looked into."""
        probability = 1.0
        for i in range(begin, len(sequence)):
            probability *= float(self.law(sequence[:i])[sequence[i]])
            if probability == 0.0:
                break
        return probability


class EnumeratedSampler:
    """The target's sampler, checked for being asked about a row with that row's own logits, position and path."""

    seed = 11

    def __init__(self, target: Target, committed: Tokens, chances: Chances) -> None:
        self._target = target
        self._committed = committed
        self._chances = chances

    def law(self, logits: Row, position: int, drafted: Sequence[int] = ()) -> Law:
        prefix = (*self._committed, *drafted)
        assert position == len(prefix)
        if not np.isfinite(logits).all():
            raise NonFiniteLogitsError(f"position {position}")
        assert (logits == self._target.logits(prefix)).all()
        return self._target.law_behind(self._committed, tuple(drafted))

    def sample(self, logits: Row, position: int, drafted: Sequence[int] = ()) -> int:
        return self._chances.draw(("target", position), self.law(logits, position, drafted))

    def extend(self, tokens: Sequence[int]) -> None:  # noqa: ARG002
        raise AssertionError("a rule commits nothing")


@dataclass(frozen=True)
class EnumeratedDraws:
    """The chances of one verification, keyed as the product keys them."""

    chances: Chances
    begin: int

    def accepts(self, index: int, probability: float) -> bool:
        return self.chances.is_below(("accept", self.begin, index), probability)

    def token(self, position: int, law: Law) -> int:
        return self.chances.draw(("residual", position), law)


@dataclass(frozen=True)
class Drafted:
    tokens: Tokens
    parents: Tokens
    q: NDArray[np.float64] | None
    bad_rows: Tokens = ()  # rows whose logits are not finite


@dataclass(frozen=True)
class Drafter:
    """Drafts a tree in which every token at depth d has `shape[d]` children: (1, 1, 1) is a chain of three.

    `law` gives q for a prefix. Siblings are drawn without replacement, or with it; `is_sampled` False takes the most
    likely tokens instead, and reports no q. `key` names the chance that token `index`, at `position`, is drawn by, in
    the step that begins at `begin`.
    """

    law: Callable[[Tokens], Law]
    shape: Tokens
    is_sampled: bool = True
    is_with_replacement: bool = False
    key: Callable[[int, int, int], Hashable] = lambda begin, position, index: ("draft", begin, index)  # noqa: ARG005

    def draft(self, committed: Tokens, chances: Chances) -> Drafted:
        paths, tokens, parents, rows = [committed], list[int](), list[int](), list[Law]()
        level = [-1]
        for width in self.shape:
            next_level = []
            for parent in level:
                prefix, taken = paths[parent + 1], list[int]()
                for _ in range(width):
                    q = self.law(prefix)
                    if taken and not self.is_with_replacement:
                        if not np.delete(q, taken).any():
                            break
                        q = without(q, taken)
                    key = self.key(len(committed), len(prefix), len(tokens))
                    token = chances.draw(key, q) if self.is_sampled else int(q.argmax())
                    next_level.append(len(tokens))
                    taken.append(token)
                    paths.append((*prefix, token))
                    tokens.append(token)
                    parents.append(parent)
                    rows.append(q)
            level = next_level
        return Drafted(tuple(tokens), tuple(parents), np.array(rows) if self.is_sampled else None)


MakeDrafted = Callable[[Tokens, Chances], Drafted]
MakeDraws = Callable[[Chances, int], EnumeratedDraws]


def cut_at(draft: MakeDrafted, token: int, *, is_kept: bool) -> MakeDrafted:
    """A chain that ends at the first `token`, with or without it. Without it the cut depends on what was cut."""

    def cut(committed: Tokens, chances: Chances) -> Drafted:
        whole = draft(committed, chances)
        if token not in whole.tokens:
            return whole
        end = whole.tokens.index(token) + is_kept
        return Drafted(whole.tokens[:end], whole.parents[:end], None if whole.q is None else whole.q[:end])

    return cut


def verification(target: Target, committed: Tokens, drafted: Drafted, chances: Chances) -> Verification:
    """The draft beside its logits. A row that no text can reach has logits like any other."""
    paths = [committed]
    for token, parent in zip(drafted.tokens, drafted.parents, strict=True):
        paths.append((*paths[parent + 1], token))
    logits = np.array([target.logits(path) for path in paths])
    logits[list(drafted.bad_rows)] = np.nan
    sampler = EnumeratedSampler(target, committed, chances)
    return Verification(3, logits, drafted.tokens, drafted.parents, len(committed), sampler, drafted.q)


def decide(rule: AcceptanceRule, given: Verification, draws: EnumeratedDraws) -> Outcome:
    outcome = rule.decide(given, draws) if isinstance(rule, RejectionRule) else rule.accept(given)
    assert len(outcome.path) == len(outcome.tokens) + (outcome.error is not None)
    assert outcome.path[0] == 0
    for row, parent, token in zip(outcome.path[1:], outcome.path, outcome.tokens, strict=False):
        assert given.parents[row - 1] == parent - 1
        assert given.draft[row - 1] == token
    return outcome


def one_step(
    rule: AcceptanceRule, target: Target, draft: MakeDrafted, make_draws: MakeDraws = EnumeratedDraws
) -> list[tuple[float, Outcome]]:
    """Everything that one verification can give, each with its probability."""
    return [
        (drawn.probability * chances.probability, outcome)
        for drawn, drafted in explore(lambda chances: draft((), chances))
        for chances, outcome in explore(verify(rule, target, drafted, make_draws), drawn.known)
    ]


def verify(
    rule: AcceptanceRule, target: Target, drafted: Drafted, make_draws: MakeDraws = EnumeratedDraws
) -> Callable[[Chances], Outcome]:
    """The verification of a draft that is there, at the start of the text."""
    given = verification(target, (), drafted, Chances())

    def program(chances: Chances) -> Outcome:
        return decide(rule, replace(given, sampler=EnumeratedSampler(target, (), chances)), make_draws(chances, 0))

    return program


def many_steps(
    rule: AcceptanceRule, target: Target, draft: MakeDrafted, length: int, make_draws: MakeDraws = EnumeratedDraws
) -> list[tuple[float, Tokens]]:
    """Everything that verifications can give until `length` tokens are there, each with its probability."""

    def program(chances: Chances) -> Tokens:
        committed: Tokens = ()
        while len(committed) < length:
            given = verification(target, committed, draft(committed, chances), chances)
            outcome = decide(rule, given, make_draws(chances, len(committed)))
            assert outcome.tokens, outcome.error
            committed += outcome.tokens
        return committed

    return [(chances.probability, tokens) for chances, tokens in explore(program)]


def error(target: Target, length: int, emitted: Iterable[tuple[float, Tokens]]) -> float:
    """How far the law of the first `length` tokens is from the target's, at most, over all sequences.

    Where fewer were emitted, the target goes on from there.
    """
    begun: dict[Tokens, float] = {}
    for probability, tokens in emitted:
        begun[tokens[:length]] = begun.get(tokens[:length], 0.0) + probability
    worst = abs(sum(begun.values()) - 1.0)
    for sequence in product(range(target.vocab_size), repeat=length):
        law = 0.0
        for begin in range(length + 1):
            if weight := begun.get(sequence[:begin], 0.0):
                law += weight * target.joint(sequence, begin)
        worst = max(worst, abs(law - target.joint(sequence)))
    return worst


def step_error(
    rule: AcceptanceRule, target: Target, draft: MakeDrafted, length: int, make_draws: MakeDraws = EnumeratedDraws
) -> float:
    """`error` of one verification."""
    outcomes = one_step(rule, target, draft, make_draws)
    return error(target, length, [(probability, outcome.tokens) for probability, outcome in outcomes])


def mean_accepted(rule: AcceptanceRule, target: Target, draft: MakeDrafted) -> float:
    """Draft tokens that one verification accepts, on average."""
    return sum(probability * outcome.num_accepted for probability, outcome in one_step(rule, target, draft))
