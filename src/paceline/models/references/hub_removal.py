"""What goes from the hub's cache with a model: entries of one repository's snapshots, and blobs that nothing else uses.

A repository is found by its folder, never by a commit, which another may have too. Links are removed and not followed;
where a folder of the cache is a link to somewhere else, nothing is removed.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import FetchError
from paceline.models.quoting import quoted
from paceline.models.references.base import CachedModel

_PARTS = ("blobs", "refs", "snapshots")  # of a repository's folder
_MAX_LINKS = 40  # from one to the next, as in the kernel


@dataclass(frozen=True, slots=True)
class Removal:
    """What goes from a repository's folder, all of it inside."""

    repository: Path
    refs: tuple[Path, ...]
    """Names of revisions that nothing is left of."""
    entries: tuple[Path, ...]
    """Of snapshots: files, or links to blobs."""
    blobs: tuple[Path, ...]
    """Files, or links into the store that repositories share; the store's own files stay."""
    num_bytes: int
    """Bytes that this frees."""


def plan_removals(models: Sequence[CachedModel]) -> list[Removal]:
    """What is to go with the models, by repository. Raises `FetchError` where a link is in the way."""
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE).expanduser().resolve()
    files: dict[Path, list[Path]] = {}
    for model in models:
        assert model.hub is not None, model
        folder = cache / f"models--{model.hub.repository.replace('/', '--')}"
        files.setdefault(folder, []).extend(model.files)
    return [_plan(folder, paths) for folder, paths in files.items()]


def carry_out(removal: Removal) -> int:
    """Remove it; the bytes freed. In an order that leaves a sound cache behind whenever it is stopped."""
    repository = removal.repository
    try:
        for paths, top in ((removal.refs, "refs"), (removal.entries, "snapshots"), (removal.blobs, "blobs")):
            for path in paths:
                path.unlink(missing_ok=True)
                _remove_empty(path.parent, repository / top)
        _remove_repository(repository)
    except OSError as error:
        raise _not_removed(repository, f"{error.strerror or error}; check its permissions") from error
    return removal.num_bytes


def _plan(repository: Path, files: Iterable[Path]) -> Removal:
    try:
        _refuse_links(repository)
        doomed = {_inside(repository, path) for path in files}
        entries = list(_files(repository / "snapshots"))
        used = _used(repository, entries, doomed)
        blobs = {hop for path in doomed for hop in _hops(path, 1) if hop.parent == repository / "blobs"} - used
        return Removal(
            repository,
            tuple(_dangling_refs(repository, entries, doomed)),
            tuple(sorted(doomed)),
            tuple(sorted(blobs)),
            sum(_freed(path) for path in (*doomed, *blobs)),
        )
    except (OSError, RuntimeError) as error:  # the latter for links in a circle
        raise _not_removed(repository, f"{error}; look at its links and permissions") from error


def _refuse_links(repository: Path) -> None:
    """Nothing that is removed may be in a folder that is elsewhere."""
    folders = [repository, *(repository / name for name in _PARTS)]
    for parent in ("snapshots", "refs"):
        for path, names, _ in os.walk(repository / parent, onerror=_raise):
            folders += [Path(path) / name for name in names]
    for folder in folders:
        if folder.is_symlink():
            raise _not_removed(repository, f"its folder {quoted(folder)} is a link to elsewhere; remove that yourself")


def _inside(repository: Path, path: Path) -> Path:
    """The path with real folders, of an entry of a snapshot."""
    real = path.parent.resolve() / path.name
    snapshots = repository / "snapshots"
    if not real.is_relative_to(snapshots) or real.parent in (snapshots, snapshots.parent):
        raise _not_removed(repository, f"{quoted(path)} is not in one of its snapshots; list the models again")
    return real


def _used(repository: Path, entries: Iterable[Path], doomed: Collection[Path]) -> set[Path]:
    """Whatever a link leads to that stays: of the repository's snapshots, and of others, which seldom have any here."""
    staying = [path for path in entries if path not in doomed]
    with os.scandir(repository.parent) as folders:
        others = [Path(folder) for folder in folders if folder.is_dir() and folder.name != repository.name]
    for folder in others:
        for parent, _, names in os.walk(folder):  # what cannot be read is passed over
            staying += [Path(parent) / name for name in names]
    staying += _files(repository / "blobs")
    return {hop for path in staying for hop in _hops(path, _MAX_LINKS)}


def _dangling_refs(repository: Path, entries: Iterable[Path], doomed: Collection[Path]) -> Iterator[Path]:
    snapshots = repository / "snapshots"

    def commits(paths: Iterable[Path]) -> set[str]:
        return {path.relative_to(snapshots).parts[0] for path in paths}

    gone = commits(doomed) - commits(path for path in entries if path not in doomed)
    for ref in _files(repository / "refs"):
        if ref.read_text(errors="replace").strip() in gone:
            yield ref


def _files(folder: Path) -> Iterator[Path]:
    """Every file and link to a file below a folder that may not be there."""
    for parent, _, names in os.walk(folder, onerror=_raise):
        for name in names:
            yield Path(parent) / name


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _hops(path: Path, limit: int) -> Iterator[Path]:
    """Where a link leads, from link to link, each path with real folders so that they can be compared."""
    for _ in range(limit):
        if not path.is_symlink():
            return
        target = path.parent / path.readlink()
        path = target.parent.resolve() / target.name
        yield path


def _freed(path: Path) -> int:
    """Bytes that go with a path: none with a link, nor with a file that has another name."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 else 0


def _remove_empty(folder: Path, end: Path) -> None:
    """Remove a folder and those around it as long as they are empty, but not `end`."""
    while folder != end and folder.is_dir() and not any(folder.iterdir()):
        with suppress(FileNotFoundError):  # another process was faster
            folder.rmdir()
        folder = folder.parent


def _remove_repository(repository: Path) -> None:
    """Remove its folder where nothing is in it; else its parts stay, without which the client takes it for damaged."""
    if any(path.name not in _PARTS or any(path.iterdir()) for path in repository.glob("*")):
        return
    for part in (*_PARTS, "."):
        with suppress(FileNotFoundError):
            (repository / part).rmdir()


def _not_removed(repository: Path, reason: str) -> FetchError:
    return FetchError(f"cannot remove from {quoted(repository)} in the hub's cache: {reason}")
