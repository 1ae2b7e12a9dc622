"""Prompt lookup: what followed the last few tokens when they stood in this sequence before.

Saxena, "Prompt Lookup Decoding" (2023); Yang et al., "Inference with Reference" (arXiv:2304.04487). Sees the tokens of
its own sequence only, so that no text can pass from one sequence to another.
"""

from collections.abc import Sequence
from time import perf_counter_ns
from typing import ClassVar

from paceline.errors import UsageError
from paceline.proposers.base import Ask, Capabilities, Draft, Evidence, Proposer

DEFAULT_MIN_MATCH = 3
DEFAULT_MAX_MATCH = 5
LONGEST_MATCH = 32  # every length costs an entry, of that length, for each token


class NgramProposer(Proposer):
    """The longest suffix of `min_match` to `max_match` tokens that occurred before, continued as it was then.

    `min_match`: a single token recurs everywhere and a pair such as newline and indent nearly so; a draft hung on one
    is mostly wrong, and every wrong draft costs verification. Three tokens are the least that point to one place in
    most text. `max_match`: a longer match tells more alike places apart, but past five they are nearly always the same
    place, and each length costs one entry per token.

    Of several occurrences the most recent wins: text is local, an edited passage supersedes its original, and inside a
    loop it is the loop's last turn. Where the continuation runs into the end of the sequence it goes on with the draft
    itself, which continues a loop with its period.
    """

    name: ClassVar[str] = "ngram"
    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(self, min_match: int = DEFAULT_MIN_MATCH, max_match: int = DEFAULT_MAX_MATCH) -> None:
        for option, value in (("min_match", min_match), ("max_match", max_match)):
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LONGEST_MATCH:
                raise UsageError(f"{option} is {value!r}; expected an integer from 1 to {LONGEST_MATCH}")
        if min_match > max_match:
            raise UsageError(f"min_match is {min_match} and max_match {max_match}; expected min_match <= max_match")
        self._lengths = range(min_match, max_match + 1)
        self._indexes: dict[int, _SuffixIndex] = {}

    def start(self, sequence: int, context: Sequence[int], namespace: str) -> None:  # noqa: ARG002 (no state is shared)
        if sequence in self._indexes:
            raise ValueError(f"sequence {sequence} was started and not finished")
        index = _SuffixIndex(self._lengths)
        index.extend(context)
        self._indexes[sequence] = index

    def extend(self, sequence: int, tokens: Sequence[int], evidence: Evidence | None = None) -> None:  # noqa: ARG002
        self._indexes[sequence].extend(tokens)

    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        return [self._propose_one(ask) for ask in asks]

    def finish(self, sequence: int) -> None:
        self._indexes.pop(sequence, None)

    def reset(self) -> None:
        self._indexes.clear()

    def _propose_one(self, ask: Ask) -> Draft:
        started = perf_counter_ns()
        index = self._indexes[ask.sequence]
        found = index.find() if ask.num_tokens > 0 else None
        if found is None:
            return Draft(ask.sequence, proposer=self.name, cost_ns=perf_counter_ns() - started)
        continuation, match_length = found
        tokens = index.copy_from(continuation, ask.num_tokens)
        cost = perf_counter_ns() - started
        return Draft(ask.sequence, tokens, match_length=match_length, proposer=self.name, cost_ns=cost)


class _SuffixIndex:
    """One sequence's tokens and, for every n-gram that has a token behind it, where the latest one continues.

    An n-gram enters the index only when the next token arrives, so the suffix of the sequence never finds itself.
    `extend` costs O(tokens added), `find` O(lengths), whatever the sequence's length.
    """

    def __init__(self, lengths: range) -> None:
        self._tokens: list[int] = []
        self._continuations: dict[int, dict[tuple[int, ...], int]] = {length: {} for length in lengths}

    def extend(self, tokens: Sequence[int]) -> None:
        known = self._tokens
        begin = len(known)
        known.extend(tokens)
        for length, continuations in self._continuations.items():
            for end in range(max(begin, length), len(known)):
                continuations[tuple(known[end - length : end])] = end

    def find(self) -> tuple[int, int] | None:
        """Where the longest known suffix continues, and that suffix's length."""
        suffix = tuple(self._tokens[-max(self._continuations) :])
        for length in reversed(self._continuations):
            if length <= len(suffix):
                end = self._continuations[length].get(suffix[-length:])
                if end is not None:
                    return end, length
        return None

    def copy_from(self, begin: int, num_tokens: int) -> tuple[int, ...]:
        """`num_tokens` tokens from `begin` on; at the end of the sequence the copy reads what it has just written."""
        copied = self._tokens[begin : begin + num_tokens]
        period = len(self._tokens) - begin
        for i in range(len(copied), num_tokens):
            copied.append(copied[i - period])
        return tuple(copied)
