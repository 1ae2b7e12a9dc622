"""What serving several requests at once gives and costs: throughput, Python time of a step, prefix hits, growth.

    python benchmarks/batching.py [--model MODEL --title TITLE] [--rounds R] [--requests N] [--json OUT]

Throughput is set against v(n), the time of a forward over n rows, measured by the same means as `paceline profile` in
between the rounds. All requests decode plainly, each from a prompt of its own.
"""

import argparse
import gc
import json
import os
import random
import statistics
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from provenance import provenance

from paceline.acceptance import create_acceptance_rule
from paceline.controller import create_controller
from paceline.engine import Engine, EngineOptions, Request
from paceline.models import open_model
from paceline.models.base import Model
from paceline.runtime import profile
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.sampling_params import SamplingParams
from paceline.telemetry import StepRecord

CONCURRENCIES = (1, 2, 4, 8, 16)
NUM_PROMPT, NUM_ANSWER = 24, 48
CONTEXT = NUM_PROMPT + NUM_ANSWER // 2  # where v(n) is measured: the middle of an answer
PREFIX = 1000


class Bench:
    """One runtime, a fresh engine for everything that is measured."""

    def __init__(self, model: Model) -> None:
        self.runtime = NativeRuntime.load(model, NativeOptions(max_length=4096, num_pages=2048))
        self.random = random.Random(0)

    def engine(self, records: list[StepRecord] | None = None, *, reuses_prefixes: bool = True) -> Engine:
        options = EngineOptions(reuses_prefixes=reuses_prefixes)
        keep = None if records is None else records.append
        rule = create_acceptance_rule("match")
        return Engine(self.runtime, create_controller("off"), [], rule, options=options, records=keep)

    def prompt(self, num_tokens: int) -> list[int]:
        vocab_size = self.runtime.info.vocab_size
        low, high = min(1000, vocab_size // 4), min(20_000, vocab_size)
        return [self.random.randrange(low, high) for _ in range(num_tokens)]

    def add(self, engine: Engine, prompt: Sequence[int], max_tokens: int) -> int:
        return engine.add_request(Request(prompt, SamplingParams(max_tokens=max_tokens, ignore_eos=True)))

    def decode(self, concurrency: int) -> tuple[float, list[float]]:
        """Tokens per second of all together while all decode, and the Python milliseconds of each such step."""
        records: list[StepRecord] = []
        engine = self.engine(records, reuses_prefixes=False)
        for _ in range(concurrency):
            self.add(engine, self.prompt(NUM_PROMPT), NUM_ANSWER)
        while not records or records[-1].num_decode_rows < concurrency:
            engine.step()
        records.clear()
        started = time.perf_counter()
        while engine.has_unfinished:
            engine.step()
        seconds = time.perf_counter() - started
        return sum(r.num_decode_rows for r in records) / seconds, [round(r.host_ns / 1e6, 4) for r in records]

    def first_token(self, engine: Engine, prompt: Sequence[int]) -> float:
        started = time.perf_counter()
        self.add(engine, prompt, 1)
        while not engine.step():
            pass
        return time.perf_counter() - started

    def prefix(self) -> tuple[float, float]:
        """Seconds to the first token behind PREFIX tokens and a question, without and with the PREFIX in the cache."""
        engine = self.engine()
        prefix = self.prompt(PREFIX)
        cold = self.first_token(engine, [*prefix, *self.prompt(4)])
        return cold, self.first_token(engine, [*prefix, *self.prompt(4)])

    def growth(self, num_requests: int) -> dict[str, Any]:
        """Resident memory and free pages before and after short requests, once the page store has been filled once."""
        engine = self.engine()
        num_pages = engine.num_free_pages
        self._serve(engine, num_requests // 10 + num_pages)  # each leaves a page of its own in the cache
        before, entries_before = resident_bytes(), num_entries(engine)
        self._serve(engine, num_requests)
        after, entries_after = resident_bytes(), num_entries(engine)
        engine.check_integrity()
        return {
            "num_requests": num_requests,
            "resident_before": before,
            "resident_after": after,
            "table_entries_before": entries_before,
            "table_entries_after": entries_after,
            "num_pages": num_pages,
            "num_free_pages": engine.num_free_pages,
        }

    def _serve(self, engine: Engine, num_requests: int) -> None:
        num_added = 0
        while num_added < num_requests or engine.has_unfinished:
            while num_added < num_requests and engine.stats().num_waiting < 4:
                self.add(engine, self.prompt(self.random.randint(14, 18)), 2)
                num_added += 1
            engine.step()


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def num_entries(engine: Engine) -> int:
    """Entries of all lists, dicts and other containers that hang from an engine, but for its runtime's."""
    seen, waiting, num = set[int](), list[object]([engine]), 0
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | NativeRuntime):
            continue
        seen.add(id(thing))
        if isinstance(thing, dict | list | tuple | set | frozenset | deque):
            num += len(thing)
            waiting += [*thing.keys(), *thing.values()] if isinstance(thing, dict) else thing
        elif type(thing).__module__.startswith("paceline"):
            waiting += gc.get_referents(thing)
    return num


def measure(bench: Bench, weight_bytes: int, rounds: int) -> dict[str, Any]:
    ratios: dict[int, list[float]] = {n: [] for n in CONCURRENCIES}
    scale: dict[int, list[float]] = {n: [] for n in CONCURRENCIES}
    host: dict[int, list[float]] = {n: [] for n in CONCURRENCIES}
    prefixes = []
    for _ in range(rounds):
        *_, times = profile.measure(bench.runtime, weight_bytes, [CONTEXT], 3)
        rates = {}
        for n in CONCURRENCIES:
            rates[n], milliseconds = bench.decode(n)
            host[n] += milliseconds
        for n in CONCURRENCIES:
            scale[n].append(rates[n] / rates[1])
            ratios[n].append(rates[n] / rates[1] / times.contexts[0].ceiling(n))
        prefixes.append(bench.prefix())
    return {"speedup": scale, "against_ceiling": ratios, "host_ms": host, "prefix_seconds": prefixes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--title", default="SmolLM2-135M-Instruct Q4_1")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=10_000, help="for growth; 0 leaves it out")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with open_model(arguments.model) as model:
        bench, weight_bytes = Bench(model), profile.step_weight_bytes(model)
    figures: dict[str, Any] = {"title": arguments.title, "provenance": provenance(), "prefix_tokens": PREFIX}
    figures["weight_bytes"] = weight_bytes
    figures |= measure(bench, weight_bytes, arguments.rounds)
    if arguments.requests:
        figures["growth"] = bench.growth(arguments.requests)
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


def show(figures: dict[str, Any]) -> None:
    for n in CONCURRENCIES:
        speedup, ratio = statistics.median(figures["speedup"][n]), statistics.median(figures["against_ceiling"][n])
        host = statistics.median(figures["host_ms"][n])
        print(
            f"{n:2} sequences   {speedup:5.2f} x one's tokens/s, {ratio:.2f} of n / v(n); Python {host:.2f} ms a step"
        )
    ratio = statistics.median(cold / hit for cold, hit in figures["prefix_seconds"])
    print(f"prefix of {PREFIX}  first token {ratio:.0f} x sooner")
    if "growth" in figures:
        growth = figures["growth"]
        more = growth["resident_after"] - growth["resident_before"]
        entries = growth["table_entries_after"] - growth["table_entries_before"]
        print(
            f"growth         {more / 1e6:+.1f} MB and {entries:+} entries after {growth['num_requests']} requests, "
            f"{growth['num_free_pages']} of {growth['num_pages']} pages free"
        )


if __name__ == "__main__":
    main()
