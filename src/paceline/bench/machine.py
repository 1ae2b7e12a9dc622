"""What the machine and the process tell while figures are made: memory and energy."""

import gc
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.runtime.native import NativeRuntime

_NOT_FOLLOWED = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType, FrameType)


def peak_rss_bytes() -> int | None:
    """The most memory that this process has ever had resident; it never falls. None where the system does not tell."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def model_memory(runtime: NativeRuntime) -> dict[str, int]:
    """Bytes of the weights ("target") and of the pages for keys and values, all written ("caches")."""
    return {"target": runtime.weight_bytes + runtime.embedding_bytes, "caches": runtime.cache_bytes}


def deep_size(root: object, shared: Iterable[object] = ()) -> int:
    """Bytes of `root` and of all that it holds, each object once; of `shared` and what only that holds, none.

    Not followed are types, modules, functions and bound methods: they are the program, or somebody else's. Of arrays
    the memory behind them counts, once for all views of it; of a runtime its weights and pages. Memory of other
    compiled code is not seen.
    """
    seen = {id(each) for each in shared}
    todo, total = [root], 0
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, _NOT_FOLLOWED):
            continue
        seen.add(id(each))
        total += sys.getsizeof(each)
        if isinstance(each, NativeRuntime):
            total += sum(model_memory(each).values())
        elif isinstance(each, np.ndarray):
            todo += _held_by_array(each)
        else:
            todo += gc.get_referents(each)
    return total


def _held_by_array(array: NDArray[Any]) -> list[object]:
    """The collector does not look into arrays."""
    held: list[object] = [] if array.base is None else [array.base]
    if array.dtype.hasobject:
        held += array.ravel().tolist()
    return held


@dataclass(frozen=True, slots=True)
class EnergyReading:
    """Microjoules of each counter, by its place."""

    counters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Counter:
    path: Path
    range: int  # microjoules at which it begins again from 0

    def read(self) -> int:
        return int(self.path.read_text())


class EnergyMeter:
    """Energy of the processors and their memory, from the counters that Linux offers under `powercap` (RAPL).

    They count the whole machine, whoever uses it. Where there are none, or only for the administrator, there is no
    reading. `root` is where the system's `sys` is.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        zones = sorted((root / "sys" / "class" / "powercap").glob("intel-rapl:*"))
        found = [counter for zone in zones if (counter := _counter(zone)) is not None]
        self._counters = tuple(found)

    def read(self) -> EnergyReading | None:
        """Raises OSError where a counter that could be read no longer can."""
        return EnergyReading(tuple([counter.read() for counter in self._counters])) if self._counters else None

    def joules(self, begin: EnergyReading | None, end: EnergyReading | None) -> float | None:
        """Between two readings. A counter that began anew in between did so once: at 100 W one lasts for minutes."""
        if begin is None or end is None:
            return None
        pairs = zip(begin.counters, end.counters, self._counters, strict=True)
        return sum([(after - before) % counter.range for before, after, counter in pairs]) / 1e6


def _counter(zone: Path) -> _Counter | None:
    """Of a package or of its memory, which a package does not count; cores are part of it, and "psys" is all of it."""
    try:
        name = (zone / "name").read_text().strip()
        if not (name.startswith("package") or name == "dram"):
            return None
        counter = _Counter(zone / "energy_uj", int((zone / "max_energy_range_uj").read_text()) + 1)
        counter.read()
    except (OSError, ValueError):
        return None
    return counter
