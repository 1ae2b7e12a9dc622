"""Checks of what callers hand in, one kind of value each. Every failure is a UsageError that names the parameter, the
value given and what is allowed."""

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from paceline.errors import UsageError

MAX_TEXT_LENGTH = 1024  # characters of a stop string or of a bad word
MAX_BIAS = 100


def is_integer(value: object, lowest: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= lowest


def check_integer(name: str, value: object, lowest: int, highest: int | None = None, *, or_none: bool = False) -> None:
    if or_none and value is None:
        return
    if not is_integer(value, lowest) or (highest is not None and value > highest):
        allowed = f"an integer of at least {lowest}" if highest is None else f"an integer from {lowest} to {highest}"
        raise UsageError(f"{name} is {value!r}; expected {'None or ' if or_none else ''}{allowed}")


def check_number(name: str, value: object, lowest: float, highest: float, allowed: str = "") -> None:
    """`allowed`: what to say that is, where it is not all from `lowest` to `highest`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
        raise UsageError(f"{name} is {value!r}; expected {allowed or f'a number from {lowest:g} to {highest:g}'}")


def check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise UsageError(f"{name} is {value!r}; expected True or False")


def checked_ids(name: str, given: object) -> tuple[int, ...]:
    """Token ids, as a tuple. Whether the model has them is another question."""
    if isinstance(given, str | bytes | bytearray) or not isinstance(given, Sequence):
        raise UsageError(f"{name} is {given!r:.100}; expected a sequence of token ids")
    for token in given:
        if not is_integer(token, 0):
            raise UsageError(f"{name} holds {token!r:.100}; expected token ids, integers of at least 0")
    return tuple(given)


def checked_texts(name: str, given: object, most: int, *, or_one: bool) -> tuple[str, ...]:
    """Texts, as a tuple. `or_one`: one text alone stands for itself."""
    if (
        isinstance(given, bytes | bytearray)
        or not isinstance(given, Sequence)
        or (isinstance(given, str) and not or_one)
    ):
        raise UsageError(f"{name} is {given!r:.100}; expected {'a text or ' if or_one else ''}a sequence of texts")
    texts = (given,) if isinstance(given, str) else tuple(given)
    if len(texts) > most:
        raise UsageError(f"{name} holds {len(texts)} texts; expected at most {most}")
    for text in texts:
        _check_text(name, text)
    return texts


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str) or not text:
        raise UsageError(f"{name} holds {text!r:.100}; expected texts of 1 to {MAX_TEXT_LENGTH:,} characters")
    if len(text) > MAX_TEXT_LENGTH:
        raise UsageError(
            f"{name} holds a text of {len(text):,} characters, {text[:20]!r}...; expected 1 to {MAX_TEXT_LENGTH:,}"
        )
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError(f"{name} holds {text!r:.100}, with a lone surrogate; expected valid Unicode text")


def checked_biases(given: object) -> tuple[tuple[int, float], ...]:
    """A bias for each of some token ids, as pairs in the order of the ids."""
    expected = "expected a mapping from token ids to numbers"
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if isinstance(pairs, str | bytes | bytearray) or not isinstance(pairs, Sequence):
        raise UsageError(f"logit_bias is {given!r:.100}; {expected}")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not is_integer(pair[0], 0):
            what = f"the key {pair[0]!r:.100}" if isinstance(given, Mapping) else f"{pair!r:.100}"
            raise UsageError(f"logit_bias holds {what}; {expected}, integers of at least 0")
        check_number(f"logit_bias[{pair[0]}]", pair[1], -MAX_BIAS, MAX_BIAS)
    if len({token for token, _ in pairs}) != len(pairs):
        raise UsageError(f"logit_bias is {given!r:.100}; expected one bias for a token id")
    return tuple(sorted(pairs))
