"""Paceline beside other engines on the same file and threads: plain decoding, forwards of n rows, and prefill.

    python benchmarks/compare.py [--model MODEL] [--engine NAME=PYTHON …] [--rounds R] [--json OUT]

NAME is an engine with its options, as engines.py lists them: `llama.cpp`, `llama.cpp+fa`, `ik_llama.cpp+fa+repack`.
PYTHON is an interpreter that has the engine's package; benchmarks/README.md says how to make one. Paceline is always
there, in this interpreter unless `--engine paceline=PYTHON` says otherwise.

Each engine lives in a process of its own. In every round every task is given to all engines, one after the other, in an
order drawn anew. Medians with quartiles over the rounds; ratios are of times of the same task in the same round.
"""

import argparse
import hashlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from engines import PACKAGES, parse_name
from provenance import provenance
from rich.console import Console
from rich.progress import track

PAUSE = 0.06  # seconds; the threads of OpenMP wait actively for some 10 ms after their last work
AGREEMENT_TOKENS = 16
TEXT = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,"  # whatever the rounding, every model goes on counting

Seconds = dict[str, dict[str, list[float]]]  # by task and engine, one for each round


class Worker:
    """An engine in a process of its own; `facts` is what it says about itself."""

    def __init__(self, name: str, python: str, arguments: list[str]) -> None:
        self.name = name
        self.errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 (closed by close)
        command = [python, str(Path(__file__).with_name("workers.py")), name, *arguments]
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
            )
        except OSError as error:
            raise SystemExit(f"{name}: {python} cannot be started: {error.strerror}") from None
        self.facts = self.receive()

    def ask(self, task: dict[str, object]) -> object:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: there will be no answer
        return self.receive()

    def receive(self) -> object:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        self.errors.seek(0)
        last = next(reversed(self.errors.read().split("\n")[:-1]), "it said nothing")
        package = PACKAGES[parse_name(self.name)[0]]
        raise SystemExit(f"{self.name}: {self.process.args[0]} ended early: {last} (it needs {package})")  # type: ignore[index]

    def close(self) -> None:
        self.process.communicate()
        self.errors.close()


@contextmanager
def running(engines: dict[str, str], arguments: list[str]) -> Iterator[list[Worker]]:
    with ExitStack() as stack:
        workers = []
        for name, python in engines.items():
            workers.append(Worker(name, python, arguments))
            stack.callback(workers[-1].close)
        yield workers


def tasks(arguments: argparse.Namespace) -> dict[str, dict[str, object]]:
    """By label. Prefill comes before rows: what it leaves in the cache is the context that they need."""
    return {
        "decode": {"task": "decode", "num_tokens": arguments.decode},
        "prefill": {"task": "prefill", "num_tokens": arguments.prefill},
        **{f"rows {n}": {"task": "rows", "n": n, "context": arguments.context} for n in arguments.rows},
    }


def measure(workers: list[Worker], todo: dict[str, dict[str, object]], rounds: int) -> Seconds:
    """The first round warms up and does not count."""
    seconds: Seconds = {task: {worker.name: [] for worker in workers} for task in todo}
    order = random.Random(1)
    console = Console(stderr=True)
    for round_ in track(range(rounds + 1), "Measuring", console=console, disable=not console.is_terminal):
        for label, task in todo.items():
            for worker in order.sample(workers, len(workers)):
                time.sleep(PAUSE)
                value = worker.ask(task)
                assert isinstance(value, float)
                if round_ > 0:
                    seconds[label][worker.name].append(value)
    return seconds


def agreement(workers: list[Worker], model: str) -> dict[str, int]:
    """How many tokens of a greedy continuation of TEXT are Paceline's, from the first on: the same model is running."""
    from paceline.models import open_model

    with open_model(model) as opened:
        prompt = opened.tokenizer().encode(TEXT)
    task = {"task": "greedy", "prompt": prompt, "num_tokens": AGREEMENT_TOKENS}
    texts = {worker.name: worker.ask(task) for worker in workers}
    return {name: common_prefix(texts["paceline"], text) for name, text in texts.items()}  # type: ignore[arg-type]


def common_prefix(a: list[int], b: list[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))


def describe_model(path: Path) -> dict[str, object]:
    """`types`: the share of each type in the bytes of all tensors."""
    from paceline.models import open_model

    with open_model(path) as opened:
        tensors = {info.name: info for info in opened.tensors.values()}.values()
    total = sum(info.num_bytes for info in tensors)
    types = {info.type.name: 0 for info in tensors}
    for info in tensors:
        types[info.type.name] += info.num_bytes
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    shares = {name: size / total for name, size in sorted(types.items(), key=lambda item: -item[1])}
    return {"name": path.name, "sha256": digest, "bytes": path.stat().st_size, "types": shares}


def spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"


def report(seconds: Seconds, agreed: dict[str, int]) -> Iterator[str]:
    for label, by_engine in seconds.items():
        yield label
        for name, values in by_engine.items():
            ratios = [value / own for value, own in zip(values, by_engine["paceline"], strict=True)]
            ratio = "" if name == "paceline" else f", {spread(ratios)} times Paceline's"
            yield f"  {name:24} {spread([1e3 * value for value in values])} ms{ratio}"
    for name, count in agreed.items():
        if name != "paceline":
            yield f"{name}: the first {count} of {AGREEMENT_TOKENS} greedy tokens are Paceline's"


def engine_option(text: str) -> tuple[str, str]:
    name, found, python = text.partition("=")
    if not found or not python:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PYTHON, an engine and an interpreter that has it")
    try:
        parse_name(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name, python


def row_counts(text: str) -> list[int]:
    """`1-16` or `1,2,4`."""
    first, found, last = text.partition("-")
    try:
        counts = list(range(int(first), int(last) + 1)) if found else [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither FIRST-LAST nor N,N,…") from None
    if not counts or not all(1 <= n <= 64 for n in counts):
        raise argparse.ArgumentTypeError(f"{text!r}: rows are from 1 to 64")
    return counts


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--title", help="what the tables call the file (default: its name)")
    parser.add_argument("--engine", action="append", type=engine_option, default=[], metavar="NAME=PYTHON")
    parser.add_argument("--threads", type=int, help="default: one for each core that the process may use")
    parser.add_argument("--rounds", type=int, default=12, help="at least 2 (default: 12)")
    parser.add_argument("--rows", type=row_counts, default=row_counts("1-16"), help="default: 1-16")
    parser.add_argument("--context", type=int, default=64, help="cached tokens in front of the rows (default: 64)")
    parser.add_argument("--decode", type=int, default=32, help="tokens to decode (default: 32)")
    parser.add_argument(
        "--prefill", type=int, default=512, help="tokens to prefill in one call (default: 512, the most)"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    for name, low, high in (("rounds", 2, 1000), ("context", 1, 512), ("decode", 1, 512), ("prefill", 1, 512)):
        if not low <= getattr(arguments, name) <= high:
            parser.error(f"--{name} is {getattr(arguments, name)}; expected {low} to {high}")
    if arguments.threads is not None and arguments.threads < 1:
        parser.error(f"--threads is {arguments.threads}; expected at least 1")
    names = [name for name, _ in arguments.engine]
    if len(set(names)) < len(names):
        parser.error("an engine is named twice")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    from paceline.models import resolve
    from paceline.runtime.threads import default_num_threads

    model, threads = str(resolve(arguments.model)), arguments.threads or default_num_threads()
    engines = {"paceline": sys.executable, **dict(arguments.engine)}
    if len(engines) == 1:
        print("no --engine: measuring Paceline alone (benchmarks/README.md says how to add others)", file=sys.stderr)
    capacity = max(arguments.prefill, 32 + arguments.decode, arguments.context + max(arguments.rows), 64)
    with running(engines, [model, str(threads), str(capacity)]) as workers:
        agreed = agreement(workers, model)
        seconds = measure(workers, tasks(arguments), arguments.rounds)
        facts = {worker.name: worker.facts | {"agreement": agreed[worker.name]} for worker in workers}  # type: ignore[operator]
    print("\n".join(report(seconds, agreed)))
    if arguments.json:
        described = describe_model(Path(model))
        found = {
            "title": arguments.title or Path(model).stem,
            "provenance": provenance(),
            "model": described,
            "threads": threads,
            "context": arguments.context,
            "prefill": arguments.prefill,
            "engines": facts,
            "seconds": seconds,
        }
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
