"""Where and how a figure was made, and which of that must be equal for figures to be comparable.

Nothing here names a folder or a user of this machine: results are published.
"""

import hashlib
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from paceline import __version__, _native
from paceline.bench.base import Workload
from paceline.models import Model
from paceline.models.gguf.parts import part_names
from paceline.models.references.integrity import file_sha256
from paceline.runtime.native import NativeRuntime, runnable_isas
from paceline.sampling_params import SamplingParams


def provenance(command: str) -> dict[str, Any]:
    """`command`: see `command_line`. `num_cpus`: those that this process may use. `memory_bytes`: of the machine, None
    where the system does not tell. `native`: see `native_build`. `kernels`: what the compiled module has for this
    processor, the fastest first.
    """
    return {
        "date": date.today().isoformat(),
        "command": command,
        "cpu": cpu_model(),
        "num_cpus": num_cpus(),
        "memory_bytes": memory_bytes(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "paceline": __version__,
        "native": native_build(),
        "kernels": list(runnable_isas()),
    }


def machine_of(runtime: NativeRuntime) -> dict[str, Any]:
    """What makes one machine's times another's: the processor, the threads and the kernels in use."""
    return {
        "cpu": cpu_model(),
        "num_cpus": num_cpus(),
        "threads": runtime.num_threads,
        "isa": runtime.info.name.removeprefix("native-"),
    }


def model_of(model: Model) -> dict[str, Any]:
    """An opened model's name, the SHA-256 of its files, and the bytes of each type of weights as they are loaded.

    Reads all files whole: about three seconds for a gigabyte.
    """
    sizes = Counter[str]()
    for info in model.tensors.values():
        sizes[info.type.name] += info.num_bytes
    return {"name": model.path.name, "sha256": model_sha256(model.path), "weight_bytes": dict(sizes.most_common())}


def model_sha256(path: Path) -> str:
    """Of one file its hash, as other tools give it; of several files, one over their names and hashes."""
    files = _model_files(path)
    if files == [path]:
        return file_sha256(path)
    lines = [f"{file_sha256(file)}  {file.name}\n" for file in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def workload_sha256(workload: Workload) -> str:
    """Of everything that its items ask; its name and the lines that held no item do not count."""
    content = [asdict(item) for item in workload.items]
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def fingerprint(
    machine: Mapping[str, Any], model: Mapping[str, Any], workload: Workload, params: SamplingParams
) -> dict[str, Any]:
    """What must be equal for tokens per second to be comparable. `machine` and `model`: from `machine_of`, `model_of`.

    A comparison of two versions lets "paceline" differ, one of two machines "machine", and looks at ratios alone.
    """
    return {
        "machine": dict(machine),
        "paceline": __version__,
        "model_sha256": model["sha256"],
        "weight_bytes": model["weight_bytes"],
        "workload_sha256": workload_sha256(workload),
        "params": plain_params(params),
    }


def plain_params(params: SamplingParams) -> dict[str, Any]:
    """As JSON has them."""
    return {each.name: _plain(getattr(params, each.name)) for each in fields(params)}


def answers_fingerprint(of: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal for answers to be: of a fingerprint all but the machine, and what computes bit for bit."""
    kept = {name: value for name, value in of.items() if name != "machine"}
    return {**kept, "isa": of["machine"]["isa"], "native": native_build()}


def native_build() -> str:
    """Of the compiled module's SHA-256, the first twelve digits."""
    return file_sha256(Path(_native.__file__))[:12]


def command_line(program: str, arguments: Sequence[str] | None = None) -> str:
    """`program` with `arguments`, by default those of this process, as others could type it."""
    return " ".join([program, *map(without_folders, sys.argv[1:] if arguments is None else arguments)])


def without_folders(argument: str) -> str:
    """Paths of one machine mean nothing on another: the last part stays, of NAME=PATH too. Addresses stay whole, and so
    does what looks like org/repo and is nowhere here."""
    name, found, path = argument.rpartition("=")
    if os.sep not in path or "://" in argument:
        return argument
    is_reference = path.count(os.sep) == 1 and not (Path(path).is_absolute() or Path(path).parent.exists())
    return argument if is_reference else f"{name}{found}{Path(path).name}"


def cpu_model() -> str:
    """The processor's name as the system gives it."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def num_cpus() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int | None:
    """Of the machine; None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _model_files(path: Path) -> list[Path]:
    """In order: the parts of a GGUF model; of a folder its weights, settings and tokenizer."""
    if not path.is_dir():
        return [path.with_name(name) for name in part_names(path.name)]
    return sorted(file for file in path.iterdir() if file.suffix in (".json", ".safetensors"))


def _plain(value: Any) -> Any:
    """As JSON has it: lists for tuples. Of a function its name is all that can be told."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return getattr(value, "__qualname__", repr(value)) if callable(value) else value
