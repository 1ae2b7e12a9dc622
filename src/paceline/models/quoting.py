"""What messages show of strings that come from files, arguments and the environment: readable, and not all of it."""

_MAX_SHOWN = 80  # characters


def quoted(text: object, limit: int = _MAX_SHOWN) -> str:
    """The text in quotes, without its middle where it is longer than `limit`."""
    shown = readable(str(text))
    if len(shown) > limit:
        shown = f"{shown[: limit // 2]}…{shown[-limit // 2 :]}"
    return repr(shown)


def readable(text: str) -> str:
    """Text as UTF-8 where it came as bytes that the locale does not know, which Python hands over as surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # other surrogates than those
        return text.encode("utf-8", "backslashreplace").decode()
