"""Grammars as masks: along drafts as behind committed tokens, back again after a rejection, and where texts end."""

import json
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pytest
from toy_grammars import allowed_ids, compiled, regex

from paceline.acceptance.grammar import CompiledGrammar, Grammar, GrammarError, GrammarMask
from paceline.acceptance.grammar.compiler import LIMITS
from paceline.acceptance.processors.bits import packed, unpacked
from paceline.errors import UsageError

TEXTS = [b"", b"a", b"b", b"ab", b"c", b"", b"a", b"1", b"23", b'"', b'{"', b'":', b"{", b"}", b" ", b"\n", b","]
END, OTHER_END = 0, 5
SIZE = len(TEXTS)

GRAMMARS: list[dict[str, Any]] = [
    {"type": "regex", "pattern": "(ab|b)*c?"},
    {"type": "regex", "pattern": "a{2,5}[^a]?"},
    {"type": "json_object"},
    {
        "type": "json_schema",
        "json_schema": {
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"enum": ["a", "ab", 1]}},
                "additionalProperties": False,
            }
        },
    },
    {"type": "grammar", "grammar": 'start: "a" start "b" | "c" start | "1"'},
    {"type": "grammar", "grammar": 'root ::= pair ("," pair)*\npair ::= [abc]+ " " [0-9]{1,3}'},
    {"type": "grammar", "grammar": 'start: x "c"\nx[suffix="1"]: /[ab]+/\n%ignore / +/'},
    {"type": "grammar", "grammar": "start: T\nT: /[ab]{2,9}/ & /.*a.*/ & ~/.*bb.*/"},
]
by_grammar = pytest.mark.parametrize("given", GRAMMARS, ids=lambda given: str(given)[:60])


def fresh(grammar: Grammar, tokens: list[int]) -> GrammarMask:
    mask = grammar.mask([END])
    mask.extend(tokens)
    return mask


@by_grammar
def test_rows_of_drafts_are_as_behind_committed_tokens(given: dict[str, Any]) -> None:
    """Random walks over trees of legal tokens: what a mask says of a row does not depend on the way there."""
    grammar, random = compiled(TEXTS, given), Random(1)
    for _ in range(20):
        mask, committed = grammar.mask([END]), list[int]()
        for _ in range(6):
            paths = [list[int]()]
            for _ in range(8):
                path = random.choice(paths)
                alone = fresh(grammar, committed + path)
                if not mask.is_active(path):
                    assert END in path
                    continue
                allowed = allowed_ids(mask, path, vocab_size=SIZE)
                assert allowed == allowed_ids(alone, vocab_size=SIZE)
                assert [token for token in range(SIZE) if mask.allows(token, path)] == allowed
                if allowed:
                    paths.append([*path, random.choice(allowed)])
                    assert mask.num_until_complete(paths[-1]) == (
                        fresh(grammar, committed).num_until_complete(paths[-1])
                    )
            kept = random.choice(paths)
            mask.extend(kept)
            committed += kept
            if END in committed:
                assert not mask.is_active(())
                break


@by_grammar
def test_every_text_is_whole_where_it_ends(given: dict[str, Any]) -> None:
    """Drawn at random, end token and all: the texts are those of the language, JSON among them."""
    grammar, random, num_ended = compiled(TEXTS, given), Random(2), 0
    for _ in range(60):
        mask, tokens = grammar.mask([END]), list[int]()
        while len(tokens) < 30:
            token = random.choice(allowed_ids(mask, vocab_size=SIZE))
            ends = token == END or mask.num_until_complete([token]) == 1
            mask.extend([token])
            tokens.append(token)
            if ends:
                num_ended += 1
                if "json" in given["type"]:
                    assert isinstance(json.loads(b"".join(TEXTS[token] for token in tokens)), dict)
                break
    assert num_ended > 5


def test_a_row_does_not_depend_on_rows_of_other_paths() -> None:
    """Of paths that end as many lexemes, which the library takes for one another in its memory of the newest mask."""
    texts = [b"", b"a", b"b", b"c", b"cb"]
    grammar = compiled(texts, {"type": "grammar", "grammar": 'start: T T? | "a" T T?\nT: /b*c/'})
    rows = {path: allowed_ids(grammar.mask([0]), path, vocab_size=5) for path in ((1,), (3,))}
    assert rows == {(1,): [2, 3, 4], (3,): [0, 2, 3]}
    for first, second in permutations(rows):
        mask = grammar.mask([0])
        for path in (first, second):
            assert allowed_ids(mask, path, vocab_size=5) == rows[path]
        committed = grammar.mask([0])
        assert committed.num_until_complete(first) is None  # looks at what may follow
        committed.extend(second)
        assert allowed_ids(committed, vocab_size=5) == rows[second]


def test_end_tokens_are_legal_where_the_text_may_end() -> None:
    mask = regex(TEXTS, "a+b?").mask([END, OTHER_END, 4, SIZE + 3])  # 4 has a text, which means nothing here
    assert allowed_ids(mask, vocab_size=SIZE) == [1, 3, 6]
    assert allowed_ids(mask, [1], vocab_size=SIZE) == [0, 1, 2, 3, 4, 5, 6]
    assert [mask.allows(token, [1]) for token in (END, OTHER_END, 4)] == [True] * 3
    assert not mask.allows(END, [])


def test_nothing_is_asked_behind_an_end_token() -> None:
    mask = regex(TEXTS, "a+").mask([END])
    assert mask.is_active([1])
    assert not mask.is_active([1, END])
    assert not mask.is_active([1, END, 7, 7])
    mask.extend([1, END, 7])
    assert not mask.is_active([])
    mask.extend([2])  # and goes on to be none of its business
    assert not mask.is_active([])


def test_text_is_complete_where_nothing_can_follow() -> None:
    mask = regex(TEXTS, "aab").mask([END])
    assert mask.num_until_complete([1]) is None
    assert mask.num_until_complete([1, 3]) == 2
    assert mask.num_until_complete([1, 3, END]) == 2
    assert mask.num_until_complete([]) is None
    assert allowed_ids(mask, [1, 3], vocab_size=SIZE) == [END]
    assert allowed_ids(regex(TEXTS, "aab").mask([]), [1, 3], vocab_size=SIZE) == []
    mask.extend([6])
    assert mask.num_until_complete([3]) == 1
    open_end = regex(TEXTS, "aab*").mask([END])
    assert open_end.num_until_complete([1, 3]) is None
    assert open_end.num_until_complete([1, 3, END]) is None  # the token ends it, not the grammar


def test_special_tokens_are_no_text_and_have_no_names() -> None:
    texts = [b"", b"", b"x", b"<|im_end|>", b"\xff[3]"]
    assert allowed_ids(regex(texts, "(?s:.)*").mask([0]), vocab_size=5) == [0, 2, 3]
    for grammar, message in [
        ('start: "x" <|im_end|>', "unknown special token"),
        ("start: <[1]>", "allows no text that this vocabulary can write"),
    ]:
        with pytest.raises(UsageError, match=message):
            compiled(texts, {"type": "grammar", "grammar": grammar})
    numbered = compiled(texts, {"type": "grammar", "grammar": 'start: "x" <[1]>'}).mask([0])
    assert allowed_ids(numbered, [2], vocab_size=5) == []


@pytest.mark.parametrize("size", [31, 32, 33, 64, 65])
def test_bits_behind_the_vocabulary_are_zero(size: int) -> None:
    """The end that the library is told of lies there, and is legal from the start here."""
    texts = [b"a"] * size
    bits = regex(texts, "a*").mask([]).allowed(())
    assert bits.tolist() == packed(np.ones(size, np.bool_)).tolist()
    assert unpacked(regex(texts, "b|a?").mask([size - 1]).allowed([0]), size).tolist() == [False] * (size - 1) + [True]


def test_grammar_forces_no_tokenization() -> None:
    """Every way of writing a text is legal, whatever options a grammar brings."""
    texts = [b"a", b"b", b"ab", b"abc", b"c"]
    for given in (
        {"type": "regex", "pattern": "abc"},
        {"type": "grammar", "grammar": '%llguidance {"no_forcing": false}\nstart: "abc"'},
        {"type": "grammar", "grammar": 'root ::= "abc"'},
    ):
        assert allowed_ids(compiled(texts, given).mask([]), vocab_size=5) == [0, 2, 3]


@pytest.mark.parametrize("attribute", ['stop="1"', "max_tokens=3"])
def test_grammars_that_cannot_go_back_are_refused(attribute: str) -> None:
    given = {"type": "grammar", "grammar": f'start: x "c"\nx[{attribute}]: /[ab]+/'}
    with pytest.raises(UsageError, match=r"response_format\.grammar cannot be taken back when a draft is rejected"):
        compiled(TEXTS, given)


def test_row_behind_an_illegal_token_is_a_defect() -> None:
    mask = regex(TEXTS, "a+").mask([END])
    with pytest.raises(RuntimeError, match=r"a row behind \[1, 7\] is asked for; token 7 is illegal there"):
        mask.allowed([1, 7])
    assert allowed_ids(mask, [1], vocab_size=SIZE) == [0, 1, 6]


class Struck:
    """A matcher whose user is interrupted behind the n-th call of it."""

    def __init__(self, matcher: object, calls: int) -> None:
        self._matcher = matcher
        self._calls = calls

    def __getattr__(self, name: str) -> object:
        def call(*arguments: object) -> object:
            result = getattr(self._matcher, name)(*arguments)
            self._calls -= 1
            if self._calls == 0:
                raise KeyboardInterrupt
            return result

        return call


@pytest.mark.parametrize("calls", range(1, 24))
def test_question_that_was_interrupted_may_be_asked_again(calls: int) -> None:
    grammar = regex(TEXTS, "(ab|b)*c?")
    mask = grammar.mask([END, 2])
    mask.extend([3])
    assert mask.allows(2, [1])
    mask._matcher = Struck(mask._matcher, calls)  # type: ignore[attr-defined]
    paths = [[], [1], [3, 3], [3, 1], [3, 4], [1]]
    try:
        for path in paths:
            mask.allowed(path)
    except KeyboardInterrupt:
        pass
    for path in reversed(paths):
        alone = grammar.mask([END, 2])
        alone.extend([3, *path])
        assert mask.allowed(path).tolist() == alone.allowed([]).tolist()


def test_bounds_do_not_depend_on_what_was_drafted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library counts states over all that it was asked. Here many drafts go nowhere, each with states of its own,
    so that matchers fail again and again; what they say is what is said where there is no such bound."""
    texts, pattern = [b"a", b"b", b"c"], "[ab]*a[ab]{6}c"
    free = regex([*texts, b"free"], pattern)
    monkeypatch.setitem(LIMITS, "max_lexer_states", 110)
    bounded = regex([*texts, b"bounded"], pattern)
    renewals = list[bool]()

    def renewed() -> object:
        renewed = CompiledGrammar.renewed(bounded)  # type: ignore[arg-type]
        renewals.append(renewed[1])
        return renewed

    monkeypatch.setattr(bounded, "renewed", renewed)
    random, masks, committed = Random(3), [bounded.mask([]), bounded.mask([])], list[int]()
    for _ in range(40):
        for _ in range(8):
            draft = [random.randrange(2) for _ in range(9)]
            alone = free.mask([])
            alone.extend(committed + draft)
            expected = alone.allowed(()).tolist()
            assert [mask.allowed(draft).tolist() for mask in masks] == [expected] * 2
        committed.append(random.randrange(2))
        for mask in masks:
            mask.extend(committed[-1:])
    assert set(renewals) == {True, False}  # made anew, and by another answer already


def test_an_answer_that_fails_takes_no_other_along() -> None:
    """Some grammars make the library panic, after which no copy of that matcher can be asked anything."""
    texts = [b"", b"a", b"b", b"c", b"x", b"{"]
    source = 'start: "a" l | "a" "c" "b"\n%ignore /x/\nl: %json {"type":"object"}'
    grammar = compiled(texts, {"type": "grammar", "grammar": source})
    failing, other = grammar.mask([0]), grammar.mask([0])
    other.extend([1])
    with pytest.raises(GrammarError, match="the grammar cannot be followed any further"):
        failing.allowed([1, 4])
    for mask, path in ((grammar.mask([0]), (1, 3)), (other, (3,))):
        assert allowed_ids(mask, path, vocab_size=6) == [2, 4]


def test_grammar_that_cannot_be_followed_any_further() -> None:
    """Its error comes from the question, again and again; telling it of tokens raises nothing."""
    grammar = regex([b"a", b"b"], "((a{1,1000}){1,1000}){1,1000}")
    mask = grammar.mask([])
    with pytest.raises(GrammarError, match="the grammar cannot be followed any further: lexer error"):
        for _ in range(5000):
            assert mask.allows(0, [])
            mask.extend([0])
    mask.extend([0])
    assert mask.num_until_complete([0]) is None
    with pytest.raises(GrammarError, match="any further"):
        mask.allowed([0])
    assert grammar.mask([]).allows(0, [])  # of another answer nothing is lost
