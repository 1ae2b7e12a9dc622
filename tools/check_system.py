"""Checks what building needs and prints the one command that installs what is missing. Standard library only."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

COMPILERS = ("c++", "g++", "clang++")
PROGRAM = "#include <bit>\n#include <concepts>\nint main() { return std::popcount(0u); }\n"


def has_headers() -> bool:
    return (Path(sysconfig.get_path("include")) / "Python.h").is_file()


def has_venv() -> bool:
    return importlib.util.find_spec("venv") is not None and importlib.util.find_spec("ensurepip") is not None


def compiler_command() -> list[str]:
    """The compiler that cmake would take: $CXX, perhaps with options, or the system's."""
    return shlex.split(os.environ.get("CXX", "")) or [next(filter(shutil.which, COMPILERS), COMPILERS[0])]


def has_compiler() -> bool:
    """Whether the C++ compiler is there and knows C++20."""
    compiler = compiler_command()
    if shutil.which(compiler[0]) is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text(PROGRAM)
        command = [*compiler, "-std=c++20", str(source), "-o", str(Path(folder) / "probe")]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 (whoever runs this may have an older one)
        print(f"Python 3.11 is needed, this is {sys.version.split()[0]}: make PYTHON=python3.11", file=sys.stderr)
        return 1
    has_cxx = has_compiler()
    if not has_cxx and os.environ.get("CXX"):
        print(f"CXX={os.environ['CXX']} is no C++20 compiler that works: unset CXX or name another", file=sys.stderr)
        return 1
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    checks = {
        f"python{version}-venv": ("the venv module", has_venv()),
        f"python{version}-dev": ("the Python headers", has_headers()),
        "g++": ("a C++20 compiler", has_cxx),
    }
    missing = {package: what for package, (what, is_there) in checks.items() if not is_there}
    if not missing:
        return 0
    print(f"Missing: {', '.join(missing.values())}. On Debian or Ubuntu:", file=sys.stderr)
    print(f"  sudo apt-get install {' '.join(missing)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
