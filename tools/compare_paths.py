"""Builds the program that compares the kernels' paths, for this processor or for emulated ones, and runs it.

    python tools/compare_paths.py native
    python tools/compare_paths.py emulated

`native` is every path that this processor runs, against the portable one; `emulated` aarch64 and an x86-64 without AVX
under qemu, and AVX-512 by SIMDe. That one runs on x86-64; it says what is missing, checks the rest, and
fails. Builds lie in build/paths.
"""

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIMDE_FOLDERS = (Path("/usr/include"), Path("/usr/local/include"))
AARCH64_COMPILER = "aarch64-linux-gnu-g++"
AARCH64 = (
    "-DCMAKE_SYSTEM_NAME=Linux",
    "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
    f"-DCMAKE_CXX_COMPILER={AARCH64_COMPILER}",
    "-DCMAKE_EXE_LINKER_FLAGS=-static",
)


class CheckError(Exception):
    """A check that failed, or could not be made."""


def require(program: str, package: str) -> None:
    if shutil.which(program) is None:
        raise CheckError(f"not checked: {program} is not installed (in Debian: {package})")


def build(name: str, *settings: str) -> str:
    folder = ROOT / "build" / "paths" / name
    source = ROOT / "native" / "tests"
    subprocess.run(["cmake", "-S", source, "-B", folder, "-DCMAKE_BUILD_TYPE=", *settings], check=True)
    subprocess.run(["cmake", "--build", folder, "--parallel"], check=True)
    return str(folder / "compare_paths")


def compare(command: Sequence[str]) -> None:
    if subprocess.run(command, check=False).returncode != 0:
        raise CheckError(f"failed: {' '.join(command)}")


def digest(*command: str) -> tuple[str, str]:
    """Name of the path that was computed with, and the digest of its numbers."""
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    name, value = output.split()
    return name, value


def check_native() -> None:
    compare([build("native")])


def check_aarch64() -> None:
    """Every path against the portable one there, and that one against the portable one here: the same bits."""
    require("qemu-aarch64", "qemu-user")
    require(AARCH64_COMPILER, "g++-aarch64-linux-gnu")
    emulated = ("qemu-aarch64", "-cpu", "max", build("aarch64", *AARCH64))
    compare(emulated)
    found, expected = digest(*emulated, "--digest", "auto"), digest(build("native"), "--digest", "portable")
    print(f"aarch64, emulated: {found[0]} {found[1]}; portable here: {expected[1]}")
    if found != ("neon", expected[1]):
        raise CheckError("failed: aarch64 computes other numbers")


def check_without_avx() -> None:
    """Without AVX the portable path is chosen, and computes what it does here."""
    require("qemu-x86_64", "qemu-user")
    program = build("baseline", "-DPACELINE_FUSED=OFF")
    found = digest("qemu-x86_64", "-cpu", "Nehalem", program, "--digest", "auto")
    expected = digest(program, "--digest", "portable")
    print(f"x86-64 without AVX, emulated: {found[0]} {found[1]}; portable here: {expected[1]}")
    if found != expected:
        raise CheckError("failed: without AVX other numbers are computed")


def check_vnni() -> None:
    """AVX-512 VNNI, which qemu does not emulate, with every intrinsic computed by SIMDe."""
    folder = next((folder for folder in SIMDE_FOLDERS if (folder / "simde" / "x86" / "avx512.h").exists()), None)
    if folder is None:
        raise CheckError("not checked: SIMDe is not installed (in Debian: libsimde-dev)")
    compare([build("simde", f"-DPACELINE_SIMDE={folder}")])


CHECKS: dict[str, tuple[Callable[[], None], ...]] = {
    "native": (check_native,),
    "emulated": (check_aarch64, check_without_avx, check_vnni),
}


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in CHECKS:
        print(__doc__, file=sys.stderr)
        return 2
    if arguments[0] == "emulated" and platform.machine() != "x86_64":
        print("emulated checks run on x86-64 only", file=sys.stderr)
        return 1
    failures = []
    for check in CHECKS[arguments[0]]:
        try:
            check()
        except CheckError as failure:
            failures.append(f"{check.__name__}: {failure}")
        except subprocess.CalledProcessError as error:
            failures.append(f"{check.__name__}: failed: {error}")
    print("\n".join(failures) or "All paths agree bit for bit.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
