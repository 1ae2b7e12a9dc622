"""What messages show of strings that come from files, arguments and the environment: readable, and not all of it."""

_MAX_SHOWN = 80  # characters


def quoted(text: object, limit: int = _MAX_SHOWN) -> str:
    """The text in quotes, without its middle where it is longer than `limit`."""
    shown = readable(str(text))
    if len(shown) > limit:
        shown = f"{shown[: limit // 2]}…{shown[-limit // 2 :]}"
    return repr(shown)


def one_line(error: BaseException, limit: int = 200) -> str:
    """What an error says, cut off at `limit` characters, as one line of printable characters."""
    words = " ".join(readable(str(error)[: 5 * limit]).split())[:limit]
    shown = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in words)
    return shown or type(error).__name__


def readable(text: str) -> str:
    """Text as UTF-8 where it came as bytes that the locale does not know, which Python hands over as surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # other surrogates than those
        return text.encode("utf-8", "backslashreplace").decode()
