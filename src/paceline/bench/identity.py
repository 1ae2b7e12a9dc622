"""Whether a mode's answers are those of mode "off", and where the first one leaves them."""

from collections.abc import Iterable, Sequence
from itertools import count

from paceline.bench.base import Answer, Block, Load
from paceline.bench.result import Difference
from paceline.controller import OFF

_BEFORE, _AFTER = 32, 16  # characters of context

_Place = tuple[Load, str, int, int]  # load, item, turn, repeat


def identical_fraction(blocks: Iterable[Block], mode: str) -> float | None:
    """Of the answers that `mode` and "off" both gave to one item, turn and repeat under one load, the share that is
    equal: letter for letter, and token for token where both tell ids. None where there is no such pair, and for "off".
    """
    pairs = [(expected, found) for _, expected, found in _pairs(blocks, mode)]
    if not pairs:
        return None
    return sum(_is_same(expected, found) for expected, found in pairs) / len(pairs)


def find_differences(blocks: Iterable[Block], *, most: int = 3) -> list[Difference]:
    """The first place of each answer that differs from that of "off", `most` answers of each mode."""
    known = list(blocks)
    differences = []
    for mode in dict.fromkeys(block.mode for block in known):
        differing = [pair for pair in _pairs(known, mode) if not _is_same(*pair[1:])]
        for (_, item, turn, _), expected, found in differing[:most]:
            differences.append(_difference(mode, item, turn, expected, found))
    return differences


def _pairs(blocks: Iterable[Block], mode: str) -> list[tuple[_Place, Answer, Answer]]:
    """(place, answer of "off", answer of `mode`), in the order of the mode's answers."""
    if mode == OFF:
        return []
    known = list(blocks)
    plain = _by_place(known, OFF)
    return [(place, plain[place], found) for place, found in _by_place(known, mode).items() if place in plain]


def _by_place(blocks: Iterable[Block], mode: str) -> dict[_Place, Answer]:
    return {
        (block.load, seen.item, seen.turn, seen.repeat): seen.answer
        for block in blocks
        if block.mode == mode
        for seen in block.observations
        if seen.answer.error is None
    }


def _is_same(expected: Answer, found: Answer) -> bool:
    return expected.text == found.text and _differing_ids(expected, found) is None


def _differing_ids(expected: Answer, found: Answer) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """None where they are equal, or one of them is not told."""
    if expected.token_ids is None or found.token_ids is None or expected.token_ids == found.token_ids:
        return None
    return expected.token_ids, found.token_ids


def _difference(mode: str, item: str, turn: int, expected: Answer, found: Answer) -> Difference:
    at = _first_difference(expected.text, found.text)
    context = _context(expected.text, found.text, at)
    ids_of_both = _differing_ids(expected, found)
    if ids_of_both is not None:
        index = _first_difference(*ids_of_both)
        left, right = (ids[index] if index < len(ids) else None for ids in ids_of_both)
        return Difference(mode, item, turn, index, left, right, context)
    ends = [text[at : at + _AFTER] or None for text in (expected.text, found.text)]
    return Difference(mode, item, turn, at, ends[0], ends[1], context)


def _first_difference(left: Sequence[object], right: Sequence[object]) -> int:
    """The first index at which they differ, or at which one has ended."""
    return next(i for i in count() if i >= min(len(left), len(right)) or left[i] != right[i])


def _context(expected: str, found: str, at: int) -> str:
    """What both say before they part, and in brackets how "off" and the mode go on."""
    if expected == found:
        return "the texts are equal"
    before = expected[max(0, at - _BEFORE) : at]
    return f"{before}[{expected[at : at + _AFTER]}|{found[at : at + _AFTER]}]"
