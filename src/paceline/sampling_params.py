"""How the text of one request is to be chosen and where it ends. Holds only what this version honours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from paceline.errors import UsageError

DEFAULT_MAX_TOKENS = 256
MAX_STOPS = 64
MAX_STOP_LENGTH = 1024  # characters


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """`max_tokens`: the most tokens to generate, at least 1; None means until the model's capacity.

    `temperature`: 0 takes the most likely token at every position; this version has no other.

    `stop_token_ids`: generation ends with the first of these, which is the last token of the result. The model's own
    end-of-text tokens end it too unless `ignore_eos`.

    Raises UsageError for a value out of range.
    """

    max_tokens: int | None = DEFAULT_MAX_TOKENS
    temperature: float = 0.0
    stop_token_ids: Sequence[int] = ()
    ignore_eos: bool = False
    stop: str | Sequence[str] = ()
    min_tokens: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens is not None and not _is_integer_from(self.max_tokens, 1):
            raise UsageError(f"max_tokens is {self.max_tokens!r}; expected None or an integer of at least 1")
        if isinstance(self.temperature, bool) or not isinstance(self.temperature, int | float) or self.temperature != 0:
            raise UsageError(
                f"temperature is {self.temperature!r}; this version allows only 0, the most likely token at every "
                "position"
            )
        if not isinstance(self.ignore_eos, bool):
            raise UsageError(f"ignore_eos is {self.ignore_eos!r}; expected True or False")
        if isinstance(self.stop_token_ids, str | bytes | bytearray) or not isinstance(self.stop_token_ids, Sequence):
            raise UsageError(f"stop_token_ids is {self.stop_token_ids!r}; expected a sequence of token ids")
        for token in self.stop_token_ids:
            if not _is_integer_from(token, 0):
                raise UsageError(f"stop_token_ids holds {token!r}; expected token ids, integers of at least 0")
        _check_min_tokens(self.min_tokens, self.max_tokens)
        object.__setattr__(self, "stop_token_ids", tuple(self.stop_token_ids))  # a value: hashable, never changed
        object.__setattr__(self, "stop", _checked_stops(self.stop))


def _check_min_tokens(min_tokens: object, max_tokens: int | None) -> None:
    if not _is_integer_from(min_tokens, 0):
        raise UsageError(f"min_tokens is {min_tokens!r}; expected an integer of at least 0")
    if max_tokens is not None and min_tokens > max_tokens:
        raise UsageError(f"min_tokens is {min_tokens}, more than max_tokens; expected 0 to {max_tokens}")


def _checked_stops(given: object) -> tuple[str, ...]:
    """The stop strings, one or several, as a tuple."""
    if isinstance(given, bytes | bytearray) or not isinstance(given, Sequence):
        raise UsageError(f"stop is {given!r:.100}; expected a text or a sequence of texts")
    stops = (given,) if isinstance(given, str) else tuple(given)
    if len(stops) > MAX_STOPS:
        raise UsageError(f"stop holds {len(stops)} texts; expected at most {MAX_STOPS}")
    for stop in stops:
        if not isinstance(stop, str) or not stop:
            raise UsageError(f"stop holds {stop!r:.100}; expected texts of 1 to {MAX_STOP_LENGTH:,} characters")
        if len(stop) > MAX_STOP_LENGTH:
            raise UsageError(
                f"stop holds a text of {len(stop):,} characters, {stop[:20]!r}...; expected 1 to {MAX_STOP_LENGTH:,}"
            )
        if any("\ud800" <= character <= "\udfff" for character in stop):
            raise UsageError(f"stop holds {stop!r:.100}, with a lone surrogate; expected valid Unicode text")
    return stops


def _is_integer_from(value: object, lowest: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= lowest
