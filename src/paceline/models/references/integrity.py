"""Whether a fetched file is still what it was: its hash, computed only where size or time have changed since."""

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def is_intact(path: Path, hashes: Sequence[str]) -> bool:
    """Whether the file has one of the SHA-256 `hashes`, now or when it was last written."""
    state = _state(path)
    if _recorded(path) == state:
        return True
    if file_sha256(path) not in hashes:
        return False
    _record(path, state)
    return True


def record_intact(path: Path) -> None:
    """Note that the file, as it is now, has the right hash."""
    _record(path, _state(path))


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_path(path: Path) -> Path:
    """Where the state of a checked file is kept."""
    return path.with_name(f"{path.name}.checked")


def _state(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}\n"


def _recorded(path: Path) -> str | None:
    try:
        return record_path(path).read_text()
    except (OSError, UnicodeDecodeError):
        return None


def _record(path: Path, state: str) -> None:
    draft = path.with_name(f"{path.name}.checked-{os.getpid()}")
    with suppress(OSError):  # a cache that cannot be written is checked each time
        draft.write_text(state)
        draft.replace(record_path(path))
