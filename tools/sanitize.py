"""Runs Python with the runtime of a sanitizer and a build of the package for it, and prints what the sanitizer found.

    python tools/sanitize.py address SITE -m pytest tests/runtime
    python tools/sanitize.py thread SITE -m pytest tests/runtime/test_threads.py

SITE is the folder that the package was installed into, built with PACELINE_SANITIZE. Reports are kept beside it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from check_system import compiler_command

# The interpreter is not built for a sanitizer, so it has to find the runtime loaded; libstdc++ too, whose exceptions
# the runtime looks for when it starts.
RUNTIMES = {"address": ("libasan.so", "libstdc++.so"), "thread": ("libtsan.so", "libstdc++.so")}

# The interpreter leaves memory to the end of the process on purpose. Allocations that cannot be had return null, as
# elsewhere; the bound is what makes the tests' absurd ones fail, which the machine otherwise would.
ADDRESS = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=65536:abort_on_error=1"
UNDEFINED = "print_stacktrace=1"
# A forked child starts threads of its own.
THREAD = "halt_on_error=1:die_after_fork=0:abort_on_error=1"


def runtime_path(name: str) -> str:
    found = subprocess.run(
        [*compiler_command(), f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(found).is_absolute():
        sys.exit(f"{compiler_command()[0]} has no {name}: use g++ (CXX=g++), whose packages bring the sanitizers along")
    return str(Path(found).resolve())


def environment(kind: str, site: Path, reports: Path) -> dict[str, str]:
    log = f":log_path={reports / kind}"
    return {
        **os.environ,
        "LD_PRELOAD": ":".join(map(runtime_path, RUNTIMES[kind])),
        "PYTHONPATH": str(site),
        "ASAN_OPTIONS": ADDRESS + log,
        "UBSAN_OPTIONS": UNDEFINED + log,
        "TSAN_OPTIONS": THREAD + log,
    }


def check_build(site: Path, env: dict[str, str]) -> None:
    """The tests must not run on another build of the package by mistake, where nothing would be found."""
    program = "from paceline import _native; print(_native.__file__)"
    found = subprocess.run([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode or not Path(found.stdout.strip()).is_relative_to(site):
        sys.exit(f"the build for the sanitizer in {site} is not what Python loads, but {found.stdout.strip()!r}")


def is_finding(report: str) -> bool:
    """Whether it says more than that an allocation could not be had: the tests ask for such ones."""
    lines = (line for line in report.splitlines() if line.strip())
    return not all("WARNING: AddressSanitizer failed to allocate" in line for line in lines)


def main() -> int:
    if len(sys.argv) < 4 or sys.argv[1] not in RUNTIMES:
        sys.exit(f"expected a sanitizer ({' or '.join(RUNTIMES)}), the folder of its build, and what Python is to run")
    kind, site, command = sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3:]
    reports = site.parent / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    env = environment(kind, site, reports)
    check_build(site, env)
    status = subprocess.run([sys.executable, *command], env=env, check=False).returncode
    found = [text for path in sorted(reports.iterdir()) if is_finding(text := path.read_text(errors="replace"))]
    print(*found, sep="\n", file=sys.stderr)
    print(f"{len(found)} reports of the {kind} sanitizer, exit status {status}")
    return 1 if found or status else 0


if __name__ == "__main__":
    sys.exit(main())
