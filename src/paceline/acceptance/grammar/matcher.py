"""A grammar's state along an answer and its drafts, by the library's matcher, which can take back what it consumed.

The matcher stands behind the committed tokens and a path of drafted ones. A question about another row takes back what
its path does not share and consumes what is missing. So the k rows of a chain cost k tokens, and siblings in a tree one
token each.

The library bounds its work by counters that grow with all that was asked, drafts that came to nothing included, and all
matchers of one grammar count together, as copies share what was found out about its patterns. Whether an answer fails
must depend on neither. So where a matcher fails, another is made from the answer's tokens and asked again, and only
what fails in one of a new grammar, which nobody else has asked, is an error.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from paceline.acceptance.grammar.base import GrammarError, GrammarMask
from paceline.acceptance.grammar.trial import one_line
from paceline.acceptance.processors.bits import WORD, Bits, is_set, only, without

if TYPE_CHECKING:
    from llguidance import LLMatcher

T = TypeVar("T")


class MatcherSource(Protocol):
    """Where the matchers of one grammar come from, in their first state."""

    def matcher(self) -> "LLMatcher": ...

    def is_usable(self) -> bool:
        """Whether they can still be asked."""
        ...

    def renewed(self) -> tuple["LLMatcher", bool]:
        """After one has failed: one that has not, and whether nobody has asked it or a copy of it anything."""
        ...


class _SharedBoundError(GrammarError):
    """A bound on what all matchers of a grammar have found out together."""


class MatcherMask(GrammarMask):
    """`has_text`: the tokens that add to a text."""

    def __init__(self, source: MatcherSource, has_text: Bits, vocab_size: int, end_ids: Collection[int]) -> None:
        self._source = source
        self._matcher = source.matcher()
        self._vocab_size = vocab_size
        self._end_ids = frozenset(token for token in end_ids if token < vocab_size)
        self._ends = only(self._end_ids, vocab_size)
        self._text = without(has_text, self._end_ids)
        self._ends_with_text = [token for token in self._end_ids if is_set(has_text, token)]
        self._committed: list[int] = []
        self._has_ended = False  # an end token was committed
        self._is_sound = True  # the matcher has consumed what it should have; an interrupt may strike in between
        self._path: list[int] = []  # drafted tokens that the matcher has consumed, behind the committed ones
        self._newest_mask = 0  # how many of the path the newest mask was computed behind
        self._is_complete = list[bool]()  # behind each of the path: whether the text is complete

    def extend(self, tokens: Sequence[int]) -> None:
        text = self._until_end(tokens)
        if not self._has_ended:
            try:
                self._asked(lambda: self._go(text))
            except GrammarError:
                self._is_sound = False  # for the next question to find out
            self._committed += text
            self._begin_path()
            self._has_ended = len(text) < len(tokens)

    def is_active(self, drafted: Sequence[int]) -> bool:
        return not self._has_ended and self._end_ids.isdisjoint(drafted)

    def allowed(self, drafted: Sequence[int]) -> Bits:
        return self._asked(lambda: self._allowed(drafted))

    def allows(self, token: int, drafted: Sequence[int]) -> bool:
        return self._asked(lambda: self._allows(token, drafted))

    def num_until_complete(self, tokens: Sequence[int]) -> int | None:
        text = self._until_end(tokens)
        try:
            self._asked(lambda: self._go(text))
        except GrammarError:  # the row behind the last token says so too, and ends the answer
            return None
        flags = self._is_complete[: len(text)]
        return flags.index(True) + 1 if True in flags else None

    def _until_end(self, tokens: Sequence[int]) -> list[int]:
        """Those before the first end token."""
        if self._end_ids.isdisjoint(tokens):
            return list(tokens)
        return list(tokens[: next(i for i, token in enumerate(tokens) if token in self._end_ids)])

    def _allowed(self, drafted: Sequence[int]) -> Bits:
        self._go(drafted)
        can_end = self._matcher.is_accepting()  # first: only the mask tells whether a bound was reached in it
        allowed = self._mask()
        self._check()
        if can_end:
            return allowed | self._ends
        for token in self._ends_with_text:
            if self._completes(token):
                allowed[token // WORD] |= np.uint32(1 << token % WORD)
        return allowed

    def _completes(self, token: int) -> bool:
        """Whether the text may end behind an end token that is part of it."""
        if not self._matcher.validate_tokens([token]):
            self._check_refusal()
            return False
        self._is_sound = False
        self._matcher.consume_tokens([token])
        is_whole = self._matcher.is_accepting()
        self._matcher.rollback(1)
        self._check()
        self._is_sound = True
        return is_whole

    def _allows(self, token: int, drafted: Sequence[int]) -> bool:
        self._go(drafted)
        if token in self._end_ids:
            return is_set(self._allowed(drafted), token)
        if token >= self._vocab_size or not is_set(self._text, token):
            return False
        is_legal = self._matcher.validate_tokens([token]) == 1
        if not is_legal:
            self._check_refusal()
        return is_legal

    def _go(self, drafted: Sequence[int]) -> None:
        """Stand behind `drafted`."""
        path = self._path
        num_shared = next((i for i, (a, b) in enumerate(zip(path, drafted, strict=False)) if a != b), None)
        if num_shared is None:
            num_shared = min(len(path), len(drafted))
        if num_shared == len(path) == len(drafted):
            return
        self._is_sound = False
        if num_shared < len(path):
            self._matcher.rollback(len(path) - num_shared)
            self._check()
            del path[num_shared:], self._is_complete[num_shared:]
            if self._newest_mask > num_shared:
                self._mask()  # the library remembers the newest, and would take it for that of another path as long
                self._check()
        for token in drafted[num_shared:]:
            if self._matcher.try_consume_tokens([token]) != 1:
                self._check_refusal()
                raise RuntimeError(f"a row behind {list(drafted)!r:.100} is asked for; token {token} is illegal there")
            path.append(token)
            self._is_complete.append(self._is_over())
        self._is_sound = True

    def _is_over(self) -> bool:
        """Whether the text may end here and no token can follow. The library looks at the grammar alone."""
        matcher = self._matcher
        if matcher.is_stopped() or not matcher.is_accepting():
            return matcher.is_stopped()
        following = self._mask()
        self._check()
        return not following.any()

    def _mask(self) -> Bits:
        """The tokens with a text that are legal behind the path, none that end the answer."""
        self._newest_mask = len(self._path)
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)
        allowed: Bits = mask[: len(self._text)] & self._text
        return allowed

    def _check(self) -> None:
        if self._matcher.is_error():
            error = one_line(self._matcher.get_error())
            kind = _SharedBoundError if error.startswith("lexer error") else GrammarError
            raise kind(f"the grammar cannot be followed any further: {error}")

    def _check_refusal(self) -> None:
        """Beyond its bounds the library finds tokens illegal that are not; only a mask tells."""
        self._mask()
        self._check()

    def _asked(self, ask: Callable[[], T]) -> T:
        is_renewed = is_new = False
        while True:
            try:
                if not self._is_sound:
                    is_renewed = True
                    self._matcher, is_new = self._source.renewed()
                    self._catch_up()
                return ask()
            except GrammarError as error:
                # Of an older matcher it may be the fault of another one of those that it shares something with.
                self._is_sound = False
                is_shared = isinstance(error, _SharedBoundError) or not self._source.is_usable()
                if is_new or (is_renewed and not is_shared):
                    raise

    def _catch_up(self) -> None:
        """Let a new matcher consume what is committed."""
        self._begin_path()
        self._matcher.consume_tokens(self._committed)
        self._check()
        self._is_sound = True

    def _begin_path(self) -> None:
        self._path.clear()
        self._is_complete.clear()
        self._newest_mask = 0
