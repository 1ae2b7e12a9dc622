"""What surrounds the forward: Python time of a decode step, peak memory, and the time to the first character from cold.

    python benchmarks/overhead.py [--model MODEL] [--rounds R] [--json OUT]

Host time is a step's wall-clock time less drafting and forward, from the engine's own StepRecords. Peak memory and the
first character are those of `paceline generate` in a process of its own.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from provenance import provenance

QUESTION = "Correct the spelling and write it again: the quick brown fox jumpd over the lazy dog and ran home agian."


def host_milliseconds(model: str, proposer: str) -> list[float]:
    """One figure for each decode step of an answer to QUESTION."""
    from paceline.api import Speculation
    from paceline.engine import Engine, Request
    from paceline.models import encode_chat, open_model
    from paceline.runtime.native import NativeRuntime
    from paceline.sampling_params import SamplingParams
    from paceline.telemetry import StepRecord

    records: list[StepRecord] = []
    with open_model(model) as opened:
        tokenizer, template = opened.tokenizer(), opened.chat_template()
        runtime = NativeRuntime.load(opened)
    assert template is not None
    controller, proposers, rule = Speculation(proposer).create()
    engine = Engine(runtime, controller, proposers, rule, records=records.append)
    prompt = encode_chat(tokenizer, template, [{"role": "user", "content": QUESTION}])
    engine.add_request(Request(prompt, SamplingParams(max_tokens=128, ignore_eos=True)))
    while engine.has_unfinished:
        engine.step()
    return [record.host_ns / 1e6 for record in records if record.num_decode_rows > 0]


def first_character(model: str) -> float:
    """Seconds from the start of the process to the first byte of its answer."""
    command = [sys.executable, "-m", "paceline", "generate", "-m", model, "--max-tokens", "8", QUESTION]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        seconds = time.perf_counter() - start
        process.stdout.read()
    return seconds


def peak_bytes(model: str) -> int:
    """Of this process's children so far: run it before anything larger."""
    command = [sys.executable, "-m", "paceline", "generate", "-m", model, "--max-tokens", "64", QUESTION]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    from paceline.models import resolve

    model = str(resolve(arguments.model))
    peak = peak_bytes(model)
    figures = {
        "peak_bytes": peak,
        "first_character_seconds": [first_character(model) for _ in range(arguments.rounds)],
        "host_ms": {proposer: host_milliseconds(model, proposer) for proposer in ("off", "ngram")},
    }
    print(f"peak memory          {peak / 1e6:.0f} MB")
    print(f"first character      {statistics.median(figures['first_character_seconds']):.2f} s")
    for proposer, values in figures["host_ms"].items():
        print(f"Python of a step     {statistics.median(values):.3f} ms ({proposer})")
    if arguments.json:
        arguments.json.write_text(json.dumps({"provenance": provenance(), **figures}))


if __name__ == "__main__":
    main()
