"""From a response format to a compiled grammar, through `llguidance`. For any thread but the engine's.

Work is bounded three times: the source has a size, a trial in a process of its own has time and memory, and the library
counts states and items at every later step.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Collection
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline.acceptance.grammar.base import Grammar, GrammarMask
from paceline.acceptance.grammar.matcher import MatcherMask, MatcherSource
from paceline.acceptance.grammar.trial import compile_apart, one_line
from paceline.acceptance.grammar.vocabulary import GrammarVocabulary
from paceline.acceptance.processors.bits import unpacked
from paceline.errors import UsageError
from paceline.response_format import ResponseFormat

if TYPE_CHECKING:
    from llguidance import LLMatcher

MAX_CACHED = 64
MAX_CACHED_BYTES = 1 << 18  # of sources; what is compiled takes up to a thousand times as much
LIMITS: dict[str, Any] = {  # of every step, beside the library's own for items and fuel
    "max_lexer_states": 50_000,  # 1 to 2 KB each
    "verbose_errors": False,
}
# A mask allows every token whose text is legal. Behind the source, where the last word counts.
_NO_FORCING = '\n%llguidance {"no_forcing": true}\n'
# White space of JSON is bounded: a model that has nothing to say would write it for ever.
_JSON_OPTIONS = '"x-guidance":{"whitespace_pattern":"[ \\\\t\\\\n\\\\r]{1,40}","lenient":false,"coerce_one_of":false}'
_GBNF_RULE = re.compile(r"(?m)^[ \t]*[\w-]+[ \t]*::=")


class CompiledGrammar(Grammar, MatcherSource):
    """`make`: a matcher from nothing. Two are made here, at the caller's expense: one whose copies serve all answers,
    and one in reserve, for when those have found out so much about the grammar that a bound is reached.

    Raises UsageError, which begins with `where`, for a grammar that the vocabulary cannot write.
    """

    def __init__(self, where: str, make: Callable[[], "LLMatcher"], vocabulary: GrammarVocabulary) -> None:
        self._make = make
        self._vocabulary = vocabulary
        self._start, self._reserve = make(), list["LLMatcher"]()
        self._lock = RLock()  # the library's objects know one caller at a time
        if not self.is_usable():
            raise UsageError(f"{where} cannot be compiled for this vocabulary: {one_line(self._start.get_error())}")
        allowed = self.mask(()).allowed(())
        if not (self._start.is_accepting() or allowed.any()):
            raise UsageError(f"{where} allows no text that this vocabulary can write")
        self._check_rollback(where, np.flatnonzero(unpacked(allowed, self.vocab_size))[:1].tolist())
        self.stock_up()

    @property
    def vocab_size(self) -> int:
        return self._vocabulary.vocab_size

    def mask(self, end_ids: Collection[int]) -> GrammarMask:
        return MatcherMask(self, self._vocabulary.has_text, self.vocab_size, end_ids)

    @property
    def has_reserve(self) -> bool:
        return len(self._reserve) > 0

    def stock_up(self) -> None:
        """See to it that there is one in reserve."""
        with self._lock:
            if not self._reserve:
                self._reserve.append(self._make())

    def matcher(self) -> "LLMatcher":
        with self._lock:
            return self._start.deep_copy()

    def renewed(self) -> tuple["LLMatcher", bool]:
        with self._lock:
            is_new = not self.is_usable()
            if is_new:
                self._start = self._reserve.pop() if self._reserve else self._make()
            return self.matcher(), is_new

    def is_usable(self) -> bool:
        """Only a mask tells; a good one is remembered in every copy."""
        with self._lock:
            self._start.compute_bitmask()
            return not self._start.is_error()

    def _check_rollback(self, where: str, first: list[int]) -> None:
        """Some grammars are for one direction alone, which the library says when it is asked to go back."""
        probe = self.matcher()
        probe.try_consume_tokens(first)
        if probe.is_error():
            raise UsageError(f"{where} cannot be compiled for this vocabulary: {one_line(probe.get_error())}")
        probe.rollback(len(first))
        if probe.is_error():
            raise UsageError(f"{where} cannot be taken back when a draft is rejected: {one_line(probe.get_error())}")


class GrammarCompiler:
    """Compiles for one vocabulary, and remembers the newest grammars. `token_text`: the bytes that a token adds to the
    text, none for a special token. Costs nothing until it is asked. For any number of threads; one compiles at a time.
    """

    def __init__(self, vocab_size: int, token_text: Callable[[int], bytes]) -> None:
        self._vocab_size = vocab_size
        self._token_text = token_text
        self._vocabulary: GrammarVocabulary | None = None
        self._compiled: OrderedDict[ResponseFormat, CompiledGrammar] = OrderedDict()
        self._compiled_lock = Lock()  # held for moments
        self._compiling = Lock()

    def known(self, response_format: ResponseFormat) -> Grammar | None:
        """What is compiled already; for a thread that must not wait."""
        grammar = self._known(response_format)
        return grammar if grammar is not None and grammar.has_reserve else None

    def compile(self, response_format: ResponseFormat) -> Grammar:
        """Raises UsageError for a format that is wrong, takes too much or that this vocabulary cannot write."""
        with self._compiling:
            grammar = self._known(response_format)
            if grammar is None:
                grammar = self._compile(response_format)
                self._remember(response_format, grammar)
            grammar.stock_up()
            return grammar

    def _known(self, response_format: ResponseFormat) -> CompiledGrammar | None:
        with self._compiled_lock:
            grammar = self._compiled.get(response_format)
            if grammar is not None:
                self._compiled.move_to_end(response_format)
            return grammar

    def _remember(self, response_format: ResponseFormat, grammar: CompiledGrammar) -> None:
        with self._compiled_lock:
            self._compiled[response_format] = grammar
            while (
                len(self._compiled) > MAX_CACHED or sum(len(each.source) for each in self._compiled) > MAX_CACHED_BYTES
            ):
                self._compiled.popitem(last=False)

    def _compile(self, response_format: ResponseFormat) -> CompiledGrammar:
        from llguidance import LLMatcher, LLParserLimits

        where, grammar = _where(response_format), _as_lark(response_format)
        if response_format.kind != "json_object":  # which is ours
            is_gbnf = _is_gbnf(response_format)
            grammar = compile_apart(where, grammar, is_gbnf=is_gbnf, limits=LIMITS)
            grammar += _NO_FORCING if is_gbnf else ""
        if self._vocabulary is None:
            self._vocabulary = GrammarVocabulary(self._vocab_size, self._token_text)
        native, limits = self._vocabulary.native, LLParserLimits(**LIMITS)

        def make() -> LLMatcher:
            return LLMatcher(native, grammar, log_level=0, limits=limits)

        return CompiledGrammar(where, make, self._vocabulary)


def _where(response_format: ResponseFormat) -> str:
    part = {"json_schema": ".json_schema.schema", "regex": ".pattern", "grammar": ".grammar"}
    return f"response_format{part.get(response_format.kind, '')}"


def _is_gbnf(response_format: ResponseFormat) -> bool:
    return response_format.kind == "grammar" and _GBNF_RULE.search(response_format.source) is not None


def _as_lark(response_format: ResponseFormat) -> str:
    """The source in the library's syntax; GBNF as it is, which is translated apart."""
    source = response_format.source
    match response_format.kind:
        case "json_object":
            return f'start: %json {{"type":"object",{_JSON_OPTIONS}}}{_NO_FORCING}'
        case "json_schema":
            rest = "" if source == "{}" else ","
            return f"start: %json {source[:-1]}{rest}{_JSON_OPTIONS}}}{_NO_FORCING}"
        case "regex":
            return f"start: /{_escaped(source)}/{_NO_FORCING}"
        case "grammar":
            return source if _is_gbnf(response_format) else source + _NO_FORCING


def _escaped(pattern: str) -> str:
    """The pattern between slashes. It is of the whole text, so anchors at its ends say nothing and are left out."""
    from llguidance import regex_to_lark

    pattern = pattern.removeprefix("^")
    if pattern.endswith("$") and (len(pattern) - len(pattern[:-1].rstrip("\\"))) % 2 == 1:
        pattern = pattern[:-1]
    return regex_to_lark(pattern, use_ascii="d")
