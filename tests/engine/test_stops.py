"""Stop strings in tokens: every small case and many larger ones against a definition that looks at the whole text."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.engine.stops import StopMatch, StopStrings

AB = [*map("".join, (word for length in (1, 2, 3) for word in product("ab", repeat=length)))]


def find_in_whole(tokens: Sequence[bytes], stops: Sequence[str], first: int) -> StopMatch | None:
    """The definition: of all occurrences, those that the first token completes; of these the first, the longest."""
    text = b"".join(tokens)
    end = 0
    for index, token in enumerate(tokens):
        start, end = end, end + len(token)
        found = [
            (last - len(stop.encode()), -len(stop.encode()), stop)
            for stop in stops
            for last in range(start + 1, end + 1)
            if text[:last].endswith(stop.encode())
        ]
        if found and index >= first:
            begin, _, stop = min(found)
            return StopMatch(index + 1, end - begin, stop)
    return None


def find_in_steps(steps: Sequence[Sequence[bytes]], stops: Sequence[str], first: int) -> StopMatch | None:
    """What an engine does: `tokens` counts from the first token of all."""
    vocabulary = [token for step in steps for token in step]
    scan = StopStrings(stops, vocabulary.__getitem__)
    num_before = 0
    for step in steps:
        ids = range(num_before, num_before + len(step))
        match = scan.find(ids, first - num_before)
        assert scan.find(ids, first - num_before) == match  # nothing has changed
        if match is not None:
            return StopMatch(num_before + match.num_tokens, match.num_bytes, match.text)
        scan.extend(ids)
        num_before += len(step)
    return None


def splits(text: bytes) -> Iterator[list[list[bytes]]]:
    """Every way to cut `text` into tokens and these into steps."""
    for cuts in product(("", "token", "step"), repeat=len(text) - 1):
        steps, begin = [list[bytes]()], 0
        for place, cut in enumerate((*cuts, "token"), start=1):
            if cut:
                steps[-1].append(text[begin:place])
                begin = place
            if cut == "step":
                steps.append([])
        yield steps


@pytest.mark.parametrize("first", [0, 2])
def test_every_short_text_in_every_split(first: int) -> None:
    stop_sets = [*combinations(AB, 1), *combinations(AB, 2)]
    num_found = 0
    for letters in product("ab", repeat=3):
        for steps in splits(("a" + "".join(letters)).encode()):  # one that begins with b is the same in other letters
            tokens = [token for step in steps for token in step]
            for stops in stop_sets:
                expected = find_in_whole(tokens, stops, first)
                assert find_in_steps(steps, stops, first) == expected, (steps, stops)
                num_found += expected is not None
    assert num_found > 1000


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[bytes]], list[str], int]:
    """Text of few characters, some of several bytes, some bytes invalid; stop strings that are mostly part of it."""
    text = draw(st.text("ab\u00e9\u00e8\U0001f642", min_size=1, max_size=40))
    data = text.encode()
    if draw(st.booleans()):
        place = draw(st.integers(0, len(data)))
        data = data[:place] + draw(st.sampled_from([b"\xc3", b"\xa9", b"\xff", b"\xf0\x9f"])) + data[place:]
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=30)))  # equal ones: tokens without text
    tokens = [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    borders = sorted(draw(st.lists(st.integers(0, len(tokens)), max_size=10)))
    steps = [tokens[begin:end] for begin, end in zip([0, *borders], [*borders, len(tokens)], strict=True)]
    spans = st.tuples(st.integers(0, len(text) - 1), st.integers(1, 8)).map(lambda at: text[at[0] : at[0] + at[1]])
    stops = draw(st.lists(spans | st.text("ab\u00e9", min_size=1, max_size=6), min_size=1, max_size=6))
    return steps, stops, draw(st.integers(0, 6))


@settings(deadline=None, max_examples=200)
@given(cases())
def test_longer_texts_with_characters_of_several_bytes(case: tuple[list[list[bytes]], list[str], int]) -> None:
    steps, stops, first = case
    expected = find_in_whole([token for step in steps for token in step], stops, first)
    assert find_in_steps(steps, stops, first) == expected


@pytest.mark.parametrize(
    ("tokens", "stops", "first", "expected"),
    [
        ([b"a", b"a", b"a", b"b"], ["aab"], 0, StopMatch(4, 3, "aab")),  # begins anew while another seems to begin
        ([b"xab", b"cdy"], ["abcd", "bc"], 0, StopMatch(2, 5, "abcd")),  # begins first
        ([b"xabc"], ["ab", "abc", "a"], 0, StopMatch(1, 3, "abc")),  # begins there too, and is longer
        ([b"ab", b"c"], ["abc", "b"], 0, StopMatch(1, 1, "b")),  # is completed first
        ([b"\xf0\x9f", b"", b"\x99", b"\x82!"], ["\U0001f642"], 0, StopMatch(4, 5, "\U0001f642")),
        ([b"", b""], ["a"], 0, None),
        ([b"a", b"", b"b"], ["a"], 1, None),  # a token without text completes nothing
        ([b"a", b"b", b"c"], ["ab", "bc"], 2, StopMatch(3, 2, "bc")),
        ([b"a", b"b", b"c"], ["abc"], 2, StopMatch(3, 3, "abc")),  # began among those that do not count
        ([b"a"], ["a"], -5, StopMatch(1, 1, "a")),
        ([b"a"], [], 0, None),
    ],
)
def test_single_cases(tokens: list[bytes], stops: list[str], first: int, expected: StopMatch | None) -> None:
    assert find_in_whole(tokens, stops, first) == expected
    assert find_in_steps([tokens], stops, first) == expected
    assert find_in_steps([[token] for token in tokens], stops, first) == expected


def test_tokens_are_read_once_and_old_text_never() -> None:
    reads: list[int] = []
    vocabulary = [b"ab"] * 1000

    def token_text(token: int) -> bytes:
        reads.append(token)
        return vocabulary[token]

    scan = StopStrings(["abc", "x" * 500], token_text)
    for token in range(1000):
        assert scan.find([token], 0) is None
        scan.extend([token])
    assert sorted(reads) == sorted([*range(1000), *range(1000)])


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        StopStrings(["a", ""], lambda _: b"")
