"""Paceline beside llama.cpp, on the same file and threads, in turns: plain decoding, prefill, and forwards of n rows.

    python benchmarks/compare.py [--model MODEL] [--threads N] [--rounds R] [--llama-python PYTHON] [--json OUT]

llama.cpp runs through `llama-cpp-python`, in this interpreter's environment or in the one of `--llama-python`:

    python -m venv llama && CMAKE_ARGS=-DGGML_NATIVE=ON llama/bin/pip install llama-cpp-python

Medians with quartiles over the rounds; ratios are of the two engines' times in the same round.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provenance import provenance
from rich.console import Console
from rich.progress import track

TASKS = {
    "decode, 64 tokens": {"task": "decode", "num_tokens": 64},
    "prefill, 512 tokens": {"task": "prefill", "num_tokens": 512},
    **{f"forward, {n} rows": {"task": "rows", "n": n, "context": 64} for n in (1, 2, 4, 8, 16)},
}
PAUSE = 0.15  # seconds for the other engine's threads to stop waiting actively


class Worker:
    """An engine in a process of its own."""

    def __init__(self, python: str, name: str, model: str, num_threads: int) -> None:
        script = str(Path(__file__).with_name("workers.py"))
        command = [python, script, name, model, str(num_threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def seconds(self, task: dict[str, object]) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(self.process.args)} ended without an answer")  # type: ignore[arg-type]
        return float(line)

    def close(self) -> None:
        self.process.communicate()


@contextmanager
def workers(arguments: argparse.Namespace) -> Iterator[dict[str, Worker]]:
    pythons = {"paceline": sys.executable}
    probe = [arguments.llama_python, "-c", "import llama_cpp"]
    if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
        pythons["llama.cpp"] = arguments.llama_python
    else:
        print("llama-cpp-python is not installed there: measuring paceline alone (see --help).", file=sys.stderr)
    running = {name: Worker(python, name, arguments.model, arguments.threads) for name, python in pythons.items()}
    try:
        yield running
    finally:
        for worker in running.values():
            worker.close()


def measure(engines: dict[str, Worker], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds by task and engine, one for each round; the first round warms up and does not count."""
    seconds: dict[str, dict[str, list[float]]] = {task: {name: [] for name in engines} for task in TASKS}
    console = Console(stderr=True)
    for round_ in track(range(rounds + 1), "Measuring", console=console, disable=not console.is_terminal):
        order = list(engines.items())[:: 1 if round_ % 2 else -1]
        for label, task in TASKS.items():
            for name, worker in order:
                time.sleep(PAUSE)
                worker.seconds(task)  # wakes the engine's threads
                value = worker.seconds(task)
                if round_ > 0:
                    seconds[label][name].append(value)
    return seconds


def summary(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"


def results(arguments: argparse.Namespace, seconds: dict[str, dict[str, list[float]]]) -> dict[str, object]:
    versions = "import importlib.metadata as m; print(m.version('llama-cpp-python'))"
    probe = subprocess.run([arguments.llama_python, "-c", versions], capture_output=True, text=True, check=False)
    return {
        "provenance": provenance(),
        "llama_cpp_python": probe.stdout.strip() or None,
        "model": Path(arguments.model).name,
        "threads": arguments.threads,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=None)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--llama-python", default=sys.executable)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    from paceline.models import resolve
    from paceline.runtime.threads import default_num_threads

    arguments.model = str(resolve(arguments.model or "smollm2"))
    arguments.threads = arguments.threads or default_num_threads()
    with workers(arguments) as engines:
        seconds = measure(engines, arguments.rounds)
    for label, by_engine in seconds.items():
        columns = [f"{name} {summary([1e3 * value for value in values])} ms" for name, values in by_engine.items()]
        if len(by_engine) == 2:
            ratios = [b / a for a, b in zip(by_engine["paceline"], by_engine["llama.cpp"], strict=True)]
            columns.append(f"llama.cpp / paceline {summary(ratios)}")
        print(f"{label:20} " + " | ".join(columns))
    if arguments.json:
        arguments.json.write_text(json.dumps(results(arguments, seconds)))


if __name__ == "__main__":
    main()
