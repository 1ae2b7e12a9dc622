"""Tiny native runtimes for tests."""

from pathlib import Path

from paceline.models import GGUFFile
from paceline.runtime.native import NativeOptions, NativeRuntime


def load(path: Path, **options: object) -> NativeRuntime:
    with GGUFFile.open(path) as file:
        return NativeRuntime.load(file, NativeOptions(**options))  # type: ignore[arg-type]
