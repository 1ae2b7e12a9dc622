"""How many threads this process may really use: affinity and control group, physical cores before their siblings."""

import math
import os
from pathlib import Path

_CPU_FOLDER = Path("/sys/devices/system/cpu")
_CGROUP_FOLDER = Path("/sys/fs/cgroup")
_CGROUP_LIST = Path("/proc/self/cgroup")


def default_num_threads() -> int:
    """One thread for each physical core in this process's affinity mask, at most what its control group allows."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    quota = _cgroup_quota()
    return max(1, min(_num_physical_cores(cpus), math.ceil(quota) if quota is not None else len(cpus)))


def _num_physical_cores(cpus: set[int]) -> int:
    """Counts processors that share a core once; every processor where the topology cannot be read."""
    cores = set()
    for cpu in cpus:
        siblings = _read(_CPU_FOLDER / f"cpu{cpu}" / "topology" / "thread_siblings_list")
        cores.add(siblings if siblings is not None else str(cpu))
    return len(cores)


def _cgroup_quota() -> float | None:
    """Processors that the tightest control group (version 2) on the path to this process allows, None if unlimited."""
    listed = _read(_CGROUP_LIST) or ""
    own = next((line[3:] for line in listed.splitlines() if line.startswith("0::/")), "/")
    folder = _CGROUP_FOLDER / own.lstrip("/")
    quotas = [_quota(place) for place in [folder, *folder.parents] if place.is_relative_to(_CGROUP_FOLDER)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(folder: Path) -> float | None:
    text = _read(folder / "cpu.max")
    if text is None or text.startswith("max"):
        return None
    quota, period = text.split()
    return int(quota) / int(period)


def _read(path: Path) -> str | None:
    """The file's text, None where the system does not have it."""
    try:
        return path.read_text().strip()
    except OSError:
        return None
