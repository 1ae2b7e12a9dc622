"""Whether two ways of decoding have written the same tokens."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """Where an answer leaves that of plain decoding. `answer` as it was counted; `index` among the answer's tokens.

    `expected` is plain decoding's token, `found` the other; None where one has ended already. `margin`: how far apart,
    in logits, the target's two best choices lie there, the noise of sampling included. `is_excused`: no further than
    a runtime that is lossless only up to numerics may be off.
    """

    answer: int
    index: int
    expected: int | None
    found: int | None
    margin: float
    is_excused: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """`num_tokens` were equal or the first to differ; behind a difference nothing can be compared. `num_excused` of the
    `num_differing` answers differ by no more than numerics may.
    """

    num_answers: int
    num_tokens: int
    num_differing: int
    num_excused: int
    first: Difference | None

    @property
    def num_faults(self) -> int:
        return self.num_differing - self.num_excused


def first_difference(expected: Sequence[int], found: Sequence[int]) -> int | None:
    """The index of the first token that is not the same, or that only one of them has."""
    for index, (one, other) in enumerate(zip(expected, found, strict=False)):
        if one != other:
            return index
    return None if len(expected) == len(found) else min(len(expected), len(found))


class ComparisonTally:
    """Adds up comparisons. `first` is the first difference that is not excused, else the first of all."""

    def __init__(self) -> None:
        self._num_answers = self._num_tokens = self._num_excused = self._num_differing = 0
        self._first: Difference | None = None

    def add_equal(self, num_tokens: int) -> None:
        self._num_answers += 1
        self._num_tokens += num_tokens

    def add_different(self, difference: Difference) -> None:
        self._num_answers += 1
        self._num_tokens += difference.index + 1
        self._num_differing += 1
        self._num_excused += difference.is_excused
        if self._first is None or (self._first.is_excused and not difference.is_excused):
            self._first = difference

    def result(self) -> Comparison:
        return Comparison(self._num_answers, self._num_tokens, self._num_differing, self._num_excused, self._first)
