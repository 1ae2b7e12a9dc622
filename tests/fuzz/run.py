"""Runs the fuzzing programs one after the other, or one of them on an input that was found.

    python tests/fuzz/run.py                      all of them, ten minutes in all
    python tests/fuzz/run.py --seconds 60         one minute in all
    python tests/fuzz/run.py gguf                 one of them
    python tests/fuzz/run.py gguf INPUT           a found input, once

Found inputs lie in build/fuzz. The exit status is 1 where something was found.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_FOUND = Path("build/fuzz")
_MEMORY = Path("/dev/shm")  # for the files of the inputs, where the system has it
_SHARES = {"gguf": 0.4, "folder": 0.3, "template": 0.2, "tokenizer": 0.1}
_TIMEOUT = 20  # seconds for one input: a hundred times what any takes


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("surface", nargs="?", choices=_SHARES)
    parser.add_argument("input", nargs="?")
    parser.add_argument("--seconds", type=int, default=600, help="of all together")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="paceline-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None) as scratch:
        tempfile.tempdir = scratch
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    _FOUND.mkdir(parents=True, exist_ok=True)
    if arguments.input is not None:
        return _start(arguments.surface, arguments.input).wait()
    names = [arguments.surface] if arguments.surface else list(_SHARES)
    total = sum(_SHARES[name] for name in names)
    return max([_fuzz(name, int(arguments.seconds * _SHARES[name] / total) or 1) for name in names])


def _fuzz(name: str, seconds: int) -> int:
    process = _start(
        name,
        f"-max_total_time={seconds}",
        f"-timeout={_TIMEOUT}",
        f"-artifact_prefix={_FOUND}/{name}-",
        "-rss_limit_mb=0",  # the address space is bounded instead
        "-len_control=0",
        "-print_final_stats=1",
    )
    assert process.stdout is not None
    output = process.stdout.read()
    status = process.wait()
    done = re.search(r"stat::number_of_executed_units: (\d+)", output)
    print(f"{name}: {done[1] if done else 'unknown'} inputs in {seconds} s, {'FOUND' if status else 'nothing found'}")
    if status:
        print(output[-6000:])
    return min(status, 1)


def _start(name: str, *options: str) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(_HERE.parent), os.environ.get("PYTHONPATH", "")])
    is_fuzzing = len(options) > 1
    return subprocess.Popen(
        [sys.executable, str(_HERE / f"fuzz_{name}.py"), *options],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": tempfile.gettempdir()},
        stdout=subprocess.PIPE if is_fuzzing else None,
        stderr=subprocess.STDOUT if is_fuzzing else None,
        text=True,
        errors="replace",
    )


if __name__ == "__main__":
    sys.exit(main())
