"""Whether an answer ends in a repetition: such a text is easy to draft, and flatters every figure of speculation."""

import re
from collections.abc import Hashable, Sequence

from paceline.bench.base import Answer

MAX_PERIOD = 64
MIN_PERIODS = 3
MIN_COVERED = 32  # tokens, or pieces of text
_PIECE = re.compile(r"[A-Za-z0-9_]+|[^\sA-Za-z0-9_]")


def ends_in_loop(answer: Answer) -> bool:
    """By its token ids, or by the pieces of its text where the target tells no ids."""
    return is_looping(answer.token_ids if answer.token_ids is not None else pieces(answer.text))


def pieces(text: str) -> list[str]:
    """Words of ASCII letters and digits, and every other visible character by itself, so that a script without spaces
    comes apart too."""
    return _PIECE.findall(text)


def is_looping(items: Sequence[Hashable]) -> bool:
    """Whether the last `MIN_COVERED` or more items are at least `MIN_PERIODS` periods, of at most `MAX_PERIOD` items
    each. The last period need not be whole. A heuristic: a table's ruled line is a loop to it."""
    return any(_repeats(items, period) for period in range(1, MAX_PERIOD + 1))


def _repeats(items: Sequence[Hashable], period: int) -> bool:
    covered = max(MIN_PERIODS * period, MIN_COVERED)
    if len(items) < covered:
        return False
    tail = items[-covered:]
    return tail[period:] == tail[:-period]
