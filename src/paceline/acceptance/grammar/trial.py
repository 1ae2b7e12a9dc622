"""Compiling a grammar where it can do no harm: in a process that the system ends when it takes too much."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paceline.errors import PacelineError, UsageError

MAX_SECONDS = 5  # of processor time; a schema of 64 KiB that can be used takes less than two
MAX_WALL_SECONDS = 60.0  # generous: a busy machine must not refuse what an idle one serves
MAX_BYTES = 1 << 30
_PLACE = re.compile(r"^at 1\(8\): ")  # behind the `start: ` that was put before a schema or a pattern
_PATTERN = re.compile(r'(?<=invalid regex ")(.{80}).{2,}(?=" \(in regex\): )')
_AGAIN = re.compile(r" in regex /.*/$")  # the pattern a second time
_WORKER = Path(__file__).with_name("trial_worker.py")


def compile_apart(where: str, grammar: str, *, is_gbnf: bool, limits: Mapping[str, Any]) -> str:
    """The grammar in the library's own syntax, once a process of its own has compiled it.

    Raises UsageError, which begins with `where`, for a grammar that is wrong or takes too much.
    """
    request = {
        "grammar": grammar,
        "is_gbnf": is_gbnf,
        "limits": dict(limits),
        "seconds": MAX_SECONDS,
        "num_bytes": MAX_BYTES,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(_WORKER)],  # -P: nothing is imported from the folder of the program
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=MAX_WALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _too_much(where, f"{MAX_WALL_SECONDS:g} seconds") from None
    if done.returncode != 0:
        raise _failure(where, done.returncode, done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    if "error" in answer:
        raise UsageError(f"{where} cannot be compiled: {one_line(answer['error'])}")
    return str(answer["grammar"])


def one_line(error: str) -> str:
    """What the library says is wrong, without its state. Of a pattern that it cannot read it shows the place first."""
    lines = error.strip().splitlines() or ["for no reason that is told"]
    if lines[0].startswith("NoExtensionBias"):
        return "no token of the vocabulary can come next"
    said = lines[0].split("; following special tokens")[0]
    reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    said = said.removesuffix("regex parse error:") + reasons[0] if reasons else said
    return _PATTERN.sub(r"\1…", _AGAIN.sub("", _PLACE.sub("", said)))[:300]


def _failure(where: str, status: int, log: bytes) -> PacelineError:
    """A process that did not answer: ended by a signal, or out of memory in one of several ways."""
    if status < 0 or b"memory" in log.lower() or b"MemoryError" in log:
        return _too_much(where, f"{MAX_SECONDS} seconds of processor time or {MAX_BYTES >> 20} MiB")
    reason = log.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
    return PacelineError(f"{where} could not be compiled: the process that tries it exited with {status}: {reason[0]}")


def _too_much(where: str, bound: str) -> UsageError:
    return UsageError(f"{where} takes more than {bound} to compile; make it simpler")
