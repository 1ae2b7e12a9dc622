"""Assertions that hold under `python -O` too and can be told what to expect."""

from collections.abc import Callable


def ensure(is_kept: bool, promise: str) -> None:
    """Raise AssertionError unless `promise` is kept."""
    if not is_kept:
        raise AssertionError(promise)


def ensure_raises(error: type[Exception], call: Callable[[], object], promise: str) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(f"{promise}: expected {error.__name__}")
