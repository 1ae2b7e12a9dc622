"""The methods that chat templates may use of texts, each with its cost. Marks of the template's own characters stay."""

from collections.abc import Callable, Mapping
from typing import Any

from paceline.models.chat.sandbox import text as marked
from paceline.models.chat.sandbox.budget import ITEM_BYTES, LIST_BYTES, Budget
from paceline.models.chat.sandbox.formatting import format_braces
from paceline.models.chat.sandbox.values import TemplateError, kind, members


def _strip(budget: Budget, text: str, chars: str | None = None) -> str:
    budget.write([text])
    return marked.strip(text, _as_text_or_none(chars, "chars"))


def _left_strip(budget: Budget, text: str, chars: str | None = None) -> str:
    budget.write([text])
    return marked.strip(text, _as_text_or_none(chars, "chars"), "left")


def _right_strip(budget: Budget, text: str, chars: str | None = None) -> str:
    budget.write([text])
    return marked.strip(text, _as_text_or_none(chars, "chars"), "right")


def _split(budget: Budget, text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    _charge_parts(budget, text, _as_text_or_none(sep, "sep"))
    return marked.split(text, sep, maxsplit)


def _right_split(budget: Budget, text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    _charge_parts(budget, text, _as_text_or_none(sep, "sep"))
    budget.search(len(text), len(sep or ""), is_backwards=True)
    return marked.split(text, sep, maxsplit, is_from_right=True)


def _split_lines(budget: Budget, text: str, keepends: bool = False) -> list[str]:
    _charge_parts(budget, text, "\n")
    return marked.split_lines(text, bool(keepends))


def _charge_parts(budget: Budget, text: str, separator: str | None) -> None:
    budget.write([text, text])
    budget.search(len(text), len(separator or ""))
    parts = len(text) // 2 if separator is None else text.count(separator) if separator else 0
    budget.step(parts // 4)
    budget.make(LIST_BYTES + (ITEM_BYTES + 64) * parts)


def replace(budget: Budget, text: str, old: str, new: str, count: int = -1) -> str:
    old, new = as_text(old, "old"), as_text(new, "new")
    budget.search(len(text), len(old))
    times = len(text) + 1 if not old else text.count(old)
    budget.step(times // 4)
    budget.make((LIST_BYTES + 2 * ITEM_BYTES) * times)
    budget.write([text])
    budget.write([new], times)
    return marked.replace(text, old, new, count)


def _join(budget: Budget, separator: str, iterable: Any) -> str:
    """Texts only, as Python's."""
    parts = [as_text(member, "a member") for member in members(iterable, budget)]
    return join_texts(budget, separator, parts)


def join_texts(budget: Budget, separator: str, parts: list[str]) -> str:
    budget.make_list(2 * len(parts))
    budget.write([separator], len(parts))
    budget.write(parts)
    pieces: list[str] = []
    for part in parts:
        pieces += [part, separator]
    return marked.concat(pieces[:-1])


def _format(budget: Budget, text: str, /, *args: Any, **kwargs: Any) -> str:
    return format_braces(budget, text, args, kwargs)


def _mapped(function: Callable[[str], str]) -> Callable[[Budget, str], str]:
    def run(budget: Budget, text: str) -> str:
        budget.write([text], 3)  # one character can become three
        budget.read(8 * len(text))  # character by character
        return marked.alike(function(text), text)

    return run


def _asked(function: Callable[[str], bool]) -> Callable[[Budget, str], bool]:
    def run(budget: Budget, text: str) -> bool:
        budget.read(8 * len(text))
        return function(text)

    return run


def _matched(name: str) -> Callable[..., bool]:
    def run(budget: Budget, text: str, affix: Any, start: int | None = None, stop: int | None = None) -> bool:
        affixes = members(affix, budget) if isinstance(affix, tuple) else (affix,)
        budget.read(sum(len(as_text(each, "a prefix or suffix")) for each in affixes))
        return bool(getattr(str, name)(text, tuple(affixes), start, stop))

    return run


def _searched(name: str) -> Callable[..., int]:
    def run(budget: Budget, text: str, sub: str, start: int | None = None, stop: int | None = None) -> int:
        budget.search(len(text), len(as_text(sub, "what is searched")), is_backwards=name == "rfind")
        return int(getattr(str, name)(text, sub, start, stop))

    return run


def _without_prefix(budget: Budget, text: str, prefix: str) -> str:
    budget.write([text])
    return marked.cut(text, slice(len(prefix) if text.startswith(as_text(prefix, "prefix")) else 0, None))


def _without_suffix(budget: Budget, text: str, suffix: str) -> str:
    budget.write([text])
    has_suffix = text.endswith(as_text(suffix, "suffix"))
    return marked.cut(text, slice(0, len(text) - len(suffix) if has_suffix else None))


def as_text(value: Any, what: str) -> str:
    if isinstance(value, str):
        return value
    raise TemplateError(f"{what} must be a text, not {kind(value)}")


def _as_text_or_none(value: Any, what: str) -> str | None:
    return None if value is None else as_text(value, what)


TEXT_METHODS: Mapping[str, Callable[..., Any]] = {
    "capitalize": _mapped(str.capitalize),
    "count": _searched("count"),
    "endswith": _matched("endswith"),
    "find": _searched("find"),
    "format": _format,
    "index": _searched("index"),
    "isalnum": _asked(str.isalnum),
    "isalpha": _asked(str.isalpha),
    "isdigit": _asked(str.isdigit),
    "islower": _asked(str.islower),
    "isspace": _asked(str.isspace),
    "isupper": _asked(str.isupper),
    "join": _join,
    "lower": _mapped(str.lower),
    "lstrip": _left_strip,
    "removeprefix": _without_prefix,
    "removesuffix": _without_suffix,
    "replace": replace,
    "rfind": _searched("rfind"),
    "rsplit": _right_split,
    "rstrip": _right_strip,
    "split": _split,
    "splitlines": _split_lines,
    "startswith": _matched("startswith"),
    "strip": _strip,
    "title": _mapped(str.title),
    "upper": _mapped(str.upper),
}
"""Each takes the budget and the text, then what templates give it."""
