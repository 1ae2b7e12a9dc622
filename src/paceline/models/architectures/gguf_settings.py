"""The metadata of a GGUF file under its architecture's prefix, and errors that name the file."""

from paceline.errors import ModelFormatError, UnsupportedModelError
from paceline.models.gguf.file import GGUFFile

_MAX_SIZE = 1 << 24  # of any one number: far above every real model, far below what overflows downstream


class GGUFSettings:
    """Getters take keys without the prefix: `block_count` for `llama.block_count`."""

    def __init__(self, file: GGUFFile, prefix: str) -> None:
        self.file = file
        self.prefix = prefix

    def has(self, key: str) -> bool:
        return f"{self.prefix}.{key}" in self.file.metadata

    def size(self, key: str, default: int | None = None) -> int:
        """A whole number from 1 on; where the key is missing, `default`, and an error if that is None."""
        value = self.file.metadata.integer(f"{self.prefix}.{key}", default)
        if not 1 <= value <= _MAX_SIZE:
            raise self.malformed(f"{self.prefix}.{key} is {value}, expected 1 to {_MAX_SIZE}")
        return value

    def count(self, key: str) -> int:
        """A whole number, 0 where the key is missing."""
        return self.file.metadata.integer(f"{self.prefix}.{key}", 0)

    def number(self, key: str, default: float | None = None) -> float:
        return self.file.metadata.number(f"{self.prefix}.{key}", default)

    def string(self, key: str, default: str | None = None) -> str:
        return self.file.metadata.string(f"{self.prefix}.{key}", default)

    def keys_under(self, prefix: str) -> list[str]:
        """The keys that begin with `prefix`, without it."""
        full = f"{self.prefix}.{prefix}"
        return [key.removeprefix(full) for key in self.file.metadata if key.startswith(full)]

    def unsupported(self, what: str) -> UnsupportedModelError:
        return UnsupportedModelError(f"{self.file.path}: {what}; choose another model")

    def malformed(self, what: str) -> ModelFormatError:
        return ModelFormatError(f"{self.file.path}: {what}; fetch or convert it again, or choose another model")
