"""Prompt lookup against a scan of the whole context, and the registry in front of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import UsageError
from paceline.proposers import PROPOSERS, Ask, NgramProposer, create_proposer
from paceline.testing import ScriptedDraft, ScriptedProposer, check_proposer


def scan(tokens: list[int], lengths: range, num_tokens: int) -> tuple[tuple[int, ...], int | None]:
    """The definition, spelled out: longest suffix first, latest occurrence first, periodic at the end."""
    for length in reversed(lengths):
        suffix = tokens[len(tokens) - length :]
        for end in range(len(tokens) - 1, length - 1, -1):
            if len(suffix) == length and tokens[end - length : end] == suffix:
                grown = list(tokens)
                for i in range(num_tokens):
                    grown.append(grown[end + i])
                return tuple(grown[len(tokens) :]), length
    return (), None


def propose(proposer: NgramProposer, num_tokens: int) -> tuple[tuple[int, ...], int | None]:
    (draft,) = proposer.propose([Ask(0, num_tokens)])
    return draft.tokens, draft.match_length


def started(context: list[int], min_match: int = 2, max_match: int = 4) -> NgramProposer:
    proposer = NgramProposer(min_match, max_match)
    proposer.start(0, context, "")
    return proposer


def test_contract() -> None:
    check_proposer(NgramProposer, vocab_size=4)
    check_proposer(lambda: NgramProposer(1, 2), vocab_size=4)


def test_scripted_proposer_keeps_the_contract() -> None:
    def branching(context: tuple[int, ...], _: int) -> ScriptedDraft:
        return ScriptedDraft(context[-3:], (-1, -1, 0)[: len(context)])

    check_proposer(lambda: ScriptedProposer(branching), 4)
    check_proposer(lambda: ScriptedProposer([ScriptedDraft((1, 2, 3))] * 50), 4)


@given(
    context=st.lists(st.integers(0, 2), min_size=1, max_size=40),
    begin=st.integers(1, 40),
    first=st.integers(1, 4),
    more=st.integers(0, 3),
    num_tokens=st.integers(1, 9),
)
def test_equals_a_scan(context: list[int], begin: int, first: int, more: int, num_tokens: int) -> None:
    proposer = started(context[:begin], first, first + more)
    for token in context[begin:]:
        proposer.extend(0, [token])
    assert propose(proposer, num_tokens) == scan(context, range(first, first + more + 1), num_tokens)


def test_longest_match_wins_over_a_later_one() -> None:
    assert propose(started([1, 2, 3, 7, 2, 3, 8, 1, 2, 3]), 1) == ((7,), 3)


def test_most_recent_of_equal_matches_wins() -> None:
    assert propose(started([2, 3, 7, 2, 3, 8, 2, 3]), 1) == ((8,), 2)


def test_loop_goes_on_with_its_period() -> None:
    assert propose(started([9, 1, 2, 3, 1, 2, 3]), 7) == ((1, 2, 3, 1, 2, 3, 1), 3)
    assert propose(started([5, 5, 5]), 4) == ((5, 5, 5, 5), 2)


def test_nothing_to_say() -> None:
    assert propose(started([1, 2, 3, 4]), 3) == ((), None)
    assert propose(started([1]), 3) == ((), None)
    assert propose(started([1, 2, 1, 2]), 0) == ((), None)


def test_one_recurring_token_is_no_match_by_default() -> None:
    proposer = NgramProposer()
    proposer.start(0, [1, 9, 2, 9, 3, 9], "")
    assert propose(proposer, 3) == ((), None)


def test_registry() -> None:
    assert list(PROPOSERS) == ["ngram"]
    assert isinstance(create_proposer("ngram", min_match=1), NgramProposer)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("n-gram", {}, "unknown proposer 'n-gram'; did you mean 'ngram'"),
        ("medusa", {}, "unknown proposer 'medusa'; choose from ngram"),
        ("ngram", {"min_mach": 2}, "no option 'min_mach'; did you mean 'min_match'"),
        ("ngram", {"min_match": 0}, "min_match is 0; expected an integer from 1 to 32"),
        ("ngram", {"max_match": True}, "max_match is True"),
        ("ngram", {"min_match": "2"}, "min_match is '2'"),
        ("ngram", {"min_match": 9}, "min_match is 9 and max_match 5"),
    ],
)
def test_wrong_options_are_named(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        create_proposer(name, **options)
