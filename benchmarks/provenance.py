"""Where and how a figure was made."""

import os
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path


def cpu_model() -> str:
    """The processor's name as the system gives it."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def without_folders(argument: str) -> str:
    """Paths of one machine mean nothing on another: the last part stays, of NAME=PATH too."""
    name, found, path = argument.rpartition("=")
    return f"{name}{found}{Path(path).name}" if os.sep in path else argument


def provenance() -> dict[str, object]:
    arguments = [Path(sys.argv[0]).name, *map(without_folders, sys.argv[1:])]
    return {
        "date": date.today().isoformat(),
        "command": "python benchmarks/" + " ".join(arguments),
        "cpu": cpu_model(),
        "num_cpus": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "paceline": version("paceline"),
    }
