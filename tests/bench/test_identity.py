"""Answers against those of mode "off"."""

from dataclasses import replace

from bench_blocks import ONE, answer, block, failed, pair

from paceline.bench.base import Answer, Load, Observation
from paceline.bench.identity import find_differences, identical_fraction
from paceline.bench.result import Difference


def test_ids_decide_where_both_have_them() -> None:
    blocks = [
        *pair(0, answer(ids=[1, 2, 3], text="abc"), answer(ids=[1, 2, 3], text="abc")),
        *pair(1, answer(ids=[1, 2, 3], text="the sum is 4."), answer(ids=[1, 5], text="the sum is 5")),
        *pair(2, answer(ids=[1, 2], text="ab"), answer(ids=[3], text="ab")),
        *pair(3, answer(ids=[1, 2], text="ab"), answer(ids=[1, 2], text="ab")),
    ]
    assert identical_fraction(blocks, "ngram-4") == 0.5
    assert find_differences(blocks) == [
        Difference("ngram-4", "code-1-0", 0, 1, 2, 5, "the sum is [4.|5]"),
        Difference("ngram-4", "code-2-0", 0, 0, 1, 3, "the texts are equal"),
    ]
    assert len(find_differences(blocks, most=1)) == 1


def test_an_answer_that_ends_early_differs_where_it_ends() -> None:
    [found] = find_differences(pair(0, answer(ids=[1, 2, 3], text="a b c"), answer(ids=[1, 2], text="a b")))
    assert (found.index, found.expected, found.found, found.context) == (2, 3, None, "a b[ c|]")
    [found] = find_differences(pair(0, answer(ids=[1, 2], text="a b"), answer(ids=[1, 2, 3], text="a b c")))
    assert (found.index, found.expected, found.found, found.context) == (2, None, 3, "a b[| c]")


def test_text_decides_where_one_has_no_ids() -> None:
    def told(text: str) -> Answer:
        return replace(answer(text=text), token_ids=None)

    long = "x" * 100
    blocks = [
        *pair(0, told("same"), answer(text="same")),
        *pair(1, told(long + "left and more than that"), told(long + "right")),
    ]
    assert identical_fraction(blocks, "ngram-4") == 0.5
    assert find_differences(blocks) == [
        Difference(
            "ngram-4",
            "code-1-0",
            0,
            100,
            "left and more th",
            "right",
            "x" * 32 + "[left and more th|right]",
        )
    ]


def test_only_answers_to_the_same_thing_are_compared() -> None:
    mine, other = answer(ids=[1]), answer(ids=[2])
    off = block("off", 0, mine)
    two = Load(concurrency=2)
    assert identical_fraction([off, block("ngram-4", 0, other, load=two)], "ngram-4") is None
    assert identical_fraction([off], "off") is None
    assert identical_fraction([off, block("ngram-4", 0, failed())], "ngram-4") is None
    assert identical_fraction([block("off", 0, failed()), block("ngram-4", 0, other)], "ngram-4") is None
    second = replace(off, mode="ngram-4", observations=(Observation("code-0-0", 0, 1, other),))
    assert identical_fraction([off, second], "ngram-4") is None
    assert identical_fraction([off, replace(second, observations=off.observations)], "ngram-4") == 1
    assert off.load == ONE


def test_equal_ids_with_another_text_are_not_the_same() -> None:
    blocks = pair(0, answer(ids=[1, 2], text="a b"), answer(ids=[1, 2], text="a c"))
    assert identical_fraction(blocks, "ngram-4") == 0
    [found] = find_differences(blocks)
    assert (found.index, found.expected, found.found) == (2, "b", "c")
