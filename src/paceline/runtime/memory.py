"""How much memory this process may still take: what the machine has left, and what control groups leave of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class _Names:
    """What one version of control groups calls its files."""

    limit: str
    usage: str
    inactive: str
    """In memory.stat: cached file pages that are given back before anything else is."""


_V1 = _Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = _Names("memory.max", "memory.current", "inactive_file")


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes; None where the system does not tell. `root` is where the system's `proc` and `sys` are."""
    machine = _machine(root / "proc" / "meminfo")
    bounds = [bound for bound in (machine, *_group_bounds(root)) if bound is not None]
    return max(min(bounds), 0) if bounds else None


def _machine(path: Path) -> int | None:
    for line in (_read(path) or "").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _group_bounds(root: Path) -> Iterator[int | None]:
    """What each control group around this process leaves."""
    mount = root / "sys" / "fs" / "cgroup"
    for line in (_read(root / "proc" / "self" / "cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield from _bounds_along(mount, path, _V2)
        elif "memory" in controllers.split(","):
            yield from _bounds_along(mount / "memory", path, _V1)


def _bounds_along(mount: Path, path: str, names: _Names) -> Iterator[int | None]:
    """From the process's own group up to the mount's: any of them may be the one that binds."""
    inner = PurePosixPath(path.lstrip("/"))
    for group in (inner, *inner.parents):
        yield _left(mount / group, names)


def _left(folder: Path, names: _Names) -> int | None:
    limit, usage = _read(folder / names.limit), _read(folder / names.usage)
    if limit is None or usage is None or not limit.strip().isdigit():  # "max": no limit
        return None
    return int(limit) - int(usage) + _inactive(folder, names)


def _inactive(folder: Path, names: _Names) -> int:
    for line in (_read(folder / "memory.stat") or "").splitlines():
        name, _, value = line.partition(" ")
        if name == names.inactive:
            return int(value)
    return 0


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:  # not on this system, or not in sight of this process
        return None
