"""The JSON files of a model folder: read with suspicion, and getters that name the key that is missing or has another
type.

Knows JSON, not what any key means.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Never, cast

from paceline.errors import ModelFormatError, ModelNotFoundError, UnsupportedModelError
from paceline.models.quoting import one_line, quoted

_MAX_BYTES = 1 << 24  # of one file: many times every real one, and what it can grow to in memory stays small


class Settings:
    """A JSON object. `null` counts as missing; a getter's `default` stands for a missing key only.

    The getters raise `ModelFormatError` naming file and key.
    """

    def __init__(self, values: Mapping[str, object], path: Path, prefix: str = "") -> None:
        self.path = path
        self._values = values
        self._prefix = prefix

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def mentions(self, key: str) -> bool:
        """True where the key is there, if only with `null`."""
        return key in self._values

    def keys(self) -> list[str]:
        """The keys that have a value, in order."""
        return [key for key in self._values if key in self]

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self._refuse(key, "a whole number", value)
        if value.bit_length() >= 64:  # what is computed from it, and said of it, stays small
            self._refuse(key, "a whole number that fits 64 bits", value)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(key, "a number", value)
        try:
            return float(value)
        except OverflowError:
            self._refuse(key, "a number that fits 64 bits", value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            self._refuse(key, "true or false", value)
        return value

    def string(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            self._refuse(key, "a string", value)
        return value

    def strings(self, key: str) -> list[str]:
        value = self._get(key, None)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self._refuse(key, "an array of strings", value)
        return value

    def text(self, key: str, inner: str) -> str:
        """A string, or the one under `inner` where the key holds an object."""
        is_object = isinstance(self._values.get(key), dict)
        return self.section(key).string(inner) if is_object else self.string(key)

    def section(self, key: str) -> "Settings":
        """The object under a key; an empty one where there is none."""
        value = self._get(key, {})
        if not isinstance(value, dict):
            self._refuse(key, "an object", value)
        return Settings(value, self.path, f"{self._prefix}{key}.")

    def name(self, key: str) -> str:
        """The key as messages show it, with the objects that it is in."""
        return f"{self._prefix}{key}"

    def malformed(self, what: str) -> ModelFormatError:
        return ModelFormatError(f"{self.path}: {what}; fetch or convert it again, or choose another model")

    def unsupported(self, what: str) -> UnsupportedModelError:
        return UnsupportedModelError(f"{self.path}: {what}; choose another model")

    def _get(self, key: str, default: object) -> object:
        value = self._values.get(key)
        value = default if value is None else value
        if value is None:
            raise self.malformed(f"{quoted(self.name(key))} is missing")
        return value

    def _refuse(self, key: str, expected: str, value: object) -> Never:
        match value:
            case list():
                kind = "an array"
            case dict():
                kind = "an object"
            case _:
                kind = quoted(value)
        raise self.malformed(f"{quoted(self.name(key))} should be {expected}, not {kind}")


def read_settings(path: Path) -> Settings:
    """Read a JSON file that holds one object.

    Raises `ModelNotFoundError` where it cannot be read and `ModelFormatError` where it is no sound JSON object.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelNotFoundError(f"cannot read {path}: {reason}; give the path of a model folder") from error
    if len(raw) > _MAX_BYTES:
        raise ModelFormatError(f"{path} is larger than {_MAX_BYTES} bytes; fetch it again")
    return Settings(parse_object(raw, str(path)), path)


def parse_object(raw: bytes, where: str) -> dict[str, object]:
    """A JSON object in UTF-8, no key of which may stand twice. `where` begins the message of a `ModelFormatError`."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{where} is no sound JSON: {one_line(error)}; fetch it again") from error
    if not isinstance(value, dict):
        raise ModelFormatError(f"{where} should hold a JSON object; fetch it again")
    return cast(dict[str, object], value)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values: dict[str, object] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {quoted(key)} stands twice")
        values[key] = value
    return values
