"""What it costs to hand out many streams: of each step's time, the share of handing over, detokenising and reading.

    python benchmarks/streams.py [--model MODEL] [--streams N] [--tokens T] [--json OUT]

N answers are read at the same time through `AsyncEngine` and the detokenising streams of `AsyncLLM`. Only steps in
which all of them decode count, and no prompt is read. The engine's thread: the time from one step's record to the next,
less what the step's own record accounts for, is handing over, with all waiting for Python's lock. The event loop's
thread: its CPU time in the same interval, for receiving, waking the readers, detokenising and reading; most of it
passes while the engine is inside the forward.
"""

import argparse
import asyncio
import json
import statistics
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from provenance import provenance

from paceline.api.async_stream import AsyncStream
from paceline.api.collector import Collector
from paceline.api.loading import LoadedModel, ModelOptions, load
from paceline.engine import AsyncEngine, Request
from paceline.sampling_params import SamplingParams
from paceline.telemetry import StepRecord

QUESTION = "Tell me what you know about the number {number}, and then about the one that comes after it."


@dataclass
class Moment:
    """The end of a step: wall-clock time and the event loop's CPU time, in nanoseconds."""

    record: StepRecord
    wall: int
    loop_cpu: int


class Clock:
    """To be told of every step, in the engine's thread; made in the event loop's."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self._loop_clock = time.pthread_getcpuclockid(threading.get_ident())

    def record(self, record: StepRecord) -> None:
        loop_cpu = time.clock_gettime_ns(self._loop_clock)
        self.moments.append(Moment(record, time.perf_counter_ns(), loop_cpu))


async def read_all(loaded: LoadedModel, num_streams: int, num_tokens: int) -> None:
    params = SamplingParams(max_tokens=num_tokens, ignore_eos=True)
    async with AsyncEngine(loaded.engine) as engine:

        async def read(number: int) -> None:
            ids = loaded.encoder.prompt(QUESTION.format(number=number))
            request = Request(ids, params)
            start = asyncio.create_task(engine.add_request(request))
            async for _ in AsyncStream(start, Collector(request, loaded.tokenizer, loaded.rule)):
                pass

        await asyncio.gather(*[read(number) for number in range(num_streams)])


def measure(model: str, num_streams: int, num_tokens: int) -> dict[str, list[float]]:
    """Milliseconds of each step in which all streams decode."""
    clock = Clock()
    options = ModelOptions(max_num_seqs=num_streams)
    asyncio.run(read_all(load(model, options, clock.record), num_streams, num_tokens))
    figures: dict[str, list[float]] = {name: [] for name in ("step", "forward", "python", "handing_over", "loop_cpu")}
    for before, after in zip(clock.moments, clock.moments[1:], strict=False):
        record = after.record
        if record.num_decode_rows == num_streams and not record.num_prefill_rows and before.record.num_decode_rows:
            wall, own = after.wall - before.wall, record.draft_ns + record.verify_ns + record.host_ns
            figures["step"].append(wall / 1e6)
            figures["forward"].append(record.verify_ns / 1e6)
            figures["python"].append(record.host_ns / 1e6)
            figures["handing_over"].append((wall - own) / 1e6)
            figures["loop_cpu"].append((after.loop_cpu - before.loop_cpu) / 1e6)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.model, arguments.streams, arguments.tokens)
    parts = zip(figures["handing_over"], figures["loop_cpu"], figures["step"], strict=True)
    share = [(handing + loop) / step for handing, loop, step in parts]
    print(f"{arguments.streams} streams, {len(share)} steps in which all decode; medians, quartiles")
    for name, values in figures.items():
        low, median, high = statistics.quantiles(values, n=4)
        print(f"{name:14} {median:8.2f} ms  {low:8.2f} {high:8.2f}")
    low, median, high = statistics.quantiles(share, n=4)
    print(f"handing out and detokenising: {median:.1%} of a step  {low:.1%} {high:.1%}")
    if arguments.json:
        content = {"provenance": provenance(), "num_streams": arguments.streams, "ms": figures, "share": share}
        arguments.json.write_text(json.dumps(content))


if __name__ == "__main__":
    main()
