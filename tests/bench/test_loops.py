"""Answers that end in a repetition, by token ids and by text."""

from random import Random

import pytest
from bench_blocks import answer

from paceline.bench.base import Answer
from paceline.bench.loops import ends_in_loop, is_looping, pieces

START = list(range(1000, 1040))


@pytest.mark.parametrize(
    ("period", "times", "expected"),
    [
        (1, 32, True),
        (1, 31, False),  # covers too little
        (2, 16, True),
        (16, 3, True),
        (16, 2, False),  # too few periods
        (30, 2, False),
        (64, 3, True),
        (65, 5, False),  # too long a period
    ],
)
def test_periods(period: int, times: int, expected: bool) -> None:
    assert is_looping(START + list(range(period)) * times) is expected


def test_the_last_period_need_not_be_whole() -> None:
    assert is_looping([*START, *list(range(20)) * 3, 0, 1, 2])
    assert not is_looping([*START, *list(range(20)) * 3, 0, 1, 3])


def test_a_repetition_that_ended_is_none() -> None:
    assert not is_looping([*[7] * 100, *START])
    assert not is_looping([])
    random = Random(3)
    assert not any(is_looping([random.randrange(50) for _ in range(200)]) for _ in range(20))


def test_text_is_judged_where_there_are_no_ids() -> None:
    looping = "It began well. " + "the cat sat, " * 12
    assert ends_in_loop(Answer(1, 9, (), looping))
    assert not ends_in_loop(Answer(1, 9, (), looping, token_ids=(1, 2, 3)))
    assert not ends_in_loop(Answer(1, 9, (), "The cat sat on the mat, and then it went away. " * 2))
    assert ends_in_loop(Answer(1, 9, (), "谢谢" * 20))
    assert ends_in_loop(answer(ids=[5] * 40))


def test_pieces_of_text() -> None:
    assert pieces("let x_1 = 20;\n  # né 谢谢") == ["let", "x_1", "=", "20", ";", "#", "n", "é", "谢", "谢"]
