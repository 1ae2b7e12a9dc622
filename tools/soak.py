"""Random traffic on a real model for some minutes, and a summary of leaks, stalls, gaps and wrong answers.

    python tools/soak.py [--seconds 600] [--model MODEL] [--seed SEED]

Bursts of requests, some of which are withdrawn, preempted or read slowly, over too few pages for all of them. The exit
status is 1 where integrity failed, something grew, nothing moved, or an answer was not that of the request alone.
"""

import argparse
import sys
import time
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from soak_service import Service, SteppedEngine, answer_alone
from soak_traffic import Traffic

from paceline.cache import IntegrityError
from paceline.engine import FinishReason, Request, StepOutput
from paceline.errors import UnsoundEngineError
from paceline.models import Tokenizer, open_model
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.telemetry import StepRecord

MAX_LENGTH = 512
NUM_PAGES = 64  # two of the longest requests; up to eight run
MAX_OPEN = 40  # requests under way
NUM_SAMPLED = 40
STALL_STEPS = 200  # polls with unfinished requests that are read, without a token for anybody
CHECK_STEPS = 20
MAX_GROWTH = 20e6  # bytes between the middle and the end
MAX_UNREAD, MIN_UNREAD, READ_SECONDS = 16, 4, 0.05  # of a slow consumer: it stops, goes on, needs that for a token


@dataclass
class Asked:
    """A request under way. `unread`: tokens that its slow consumer has yet to read; None for one that keeps up."""

    request: Request
    tokens: list[int] = field(default_factory=list)
    unread: int | None = None
    is_held: bool = False
    last: float | None = None  # when its last token came, while it ran since then


@dataclass
class Findings:
    """`gaps`: milliseconds between two outputs of a stream that ran on; `largest`, and what rode in its step.
    `longest_wait` counts preemptions too."""

    gaps: "array[float]" = field(default_factory=lambda: array("d"))
    longest_wait: float = 0.0
    largest: tuple[float, str] = (0.0, "")
    num_tokens: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    num_checks: int = 0
    problems: list[str] = field(default_factory=list)
    samples: list[tuple[Request, tuple[int, ...], StepOutput]] = field(default_factory=list)


class Soak:
    def __init__(self, traffic: Traffic, random: Random) -> None:
        self.findings = Findings()
        self._traffic = traffic
        self._random = random
        self._asked: dict[int, Asked] = {}
        self._record: StepRecord | None = None
        self._recomputed: set[int] = set()
        self._num_quiet = 0
        self._read_at = time.perf_counter()

    def observe(self, record: StepRecord) -> None:
        self._record = record
        for step in record.sequences:
            asked = self._asked.get(step.sequence)
            if step.prefilled and asked is not None and asked.tokens:
                self._recomputed.add(step.sequence)

    def run(self, service: Service, seconds: float) -> None:
        end = time.perf_counter() + seconds
        num_polls = 0
        while time.perf_counter() < end:
            self._disturb(service)
            self._poll(service)
            num_polls += 1
            if num_polls % CHECK_STEPS == 0:
                self._check(service)

    def drain(self, service: Service) -> None:
        """Let everything come to its end, read at once."""
        for number, asked in self._asked.items():
            asked.unread = None
            service.set_read(number, True)
        while self._asked and not self.findings.problems:
            self._poll(service)
        self._check(service)

    def _disturb(self, service: Service) -> None:
        random = self._random
        if random.random() < (0.02 if self._asked else 0.5):
            for _ in range(random.choice((1, 1, 2, 4, 12))):
                if len(self._asked) < MAX_OPEN:
                    request = self._traffic.request()
                    self._asked[service.submit(request)] = Asked(request, unread=random.choice((None, None, None, 0)))
        if self._asked and random.random() < 0.02:
            service.cancel(random.choice(list(self._asked)))
        if self._asked and random.random() < 0.02:
            service.preempt(random.choice(list(self._asked)))
        self._read(service)

    def _read(self, service: Service) -> None:
        num_read = int((time.perf_counter() - self._read_at) / READ_SECONDS)
        self._read_at += num_read * READ_SECONDS
        for number, asked in self._asked.items():
            if asked.unread is not None:
                asked.unread = max(0, asked.unread - num_read)
                is_held = asked.unread > (MIN_UNREAD if asked.is_held else MAX_UNREAD)
                if is_held != asked.is_held:
                    asked.is_held, asked.last = is_held, None
                    service.set_read(number, not is_held)

    def _poll(self, service: Service) -> None:
        outputs = service.poll()
        now = time.perf_counter()
        for output in outputs:
            self._take(output, now)
        is_waiting = any(not asked.is_held for asked in self._asked.values())
        has_moved = any(output.tokens or output.finish_reason for output in outputs)
        self._num_quiet = self._num_quiet + 1 if is_waiting and not has_moved else 0
        if self._num_quiet == STALL_STEPS:
            self.findings.problems.append(f"stall: {len(self._asked)} requests, no token in {STALL_STEPS} steps")

    def _take(self, output: StepOutput, now: float) -> None:
        asked, findings = self._asked[output.sequence], self.findings
        if output.tokens:
            self._time(asked, output.sequence, now)
        asked.tokens += output.tokens
        findings.num_tokens += len(output.tokens)
        if asked.unread is not None:
            asked.unread += len(output.tokens)
        if output.finish_reason is None:
            return
        del self._asked[output.sequence]
        self._recomputed.discard(output.sequence)
        findings.reasons[output.finish_reason] += 1
        self._traffic.remember((*asked.request.prompt, *asked.tokens))
        sample = (asked.request, tuple(asked.tokens), output)
        if len(findings.samples) < NUM_SAMPLED:
            findings.samples.append(sample)
        elif (i := self._random.randrange(findings.reasons.total())) < NUM_SAMPLED:
            findings.samples[i] = sample

    def _time(self, asked: Asked, number: int, now: float) -> None:
        findings, gap = self.findings, 0.0 if asked.last is None else (now - asked.last) * 1e3
        if gap:
            findings.longest_wait = max(findings.longest_wait, gap)
        if gap and number not in self._recomputed:
            findings.gaps.append(gap)
            if gap > findings.largest[0] and (record := self._record) is not None:
                rows = (record.num_prefill_rows, record.num_decode_rows, record.num_draft_rows)
                findings.largest = gap, "{} prefill, {} decode, {} draft rows".format(*rows)
        self._recomputed.discard(number)
        asked.last = now

    def _check(self, service: Service) -> None:
        self.findings.num_checks += 1
        try:
            service.check_integrity()
        except IntegrityError as error:
            self.findings.problems.append(f"integrity: {error}")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def mismatches(
    runtime: NativeRuntime, tokenizer: Tokenizer, samples: Sequence[tuple[Request, tuple[int, ...], StepOutput]]
) -> list[str]:
    """Of the sampled requests, those that say something else when they are alone."""
    found = []
    for request, tokens, output in samples:
        expected, last = answer_alone(runtime, tokenizer, request)
        if output.finish_reason is FinishReason.ABORT:
            is_right = tokens == expected[: len(tokens)]
        else:
            stops = [stop and (stop.text, stop.num_bytes) for stop in (output.stop, last.stop)]
            is_right = (tokens, output.finish_reason, stops[0]) == (expected, last.finish_reason, stops[1])
        if not is_right:
            found.append(f"mismatch: {request} gave {tokens}, alone {expected}")
    return found


def growth(sizes: Sequence[dict[str, int]]) -> list[str]:
    """`sizes`: at the start, in the middle and at the end, idle each time."""
    start, middle, end = sizes
    found = [
        f"leak: {name}, {start[name]} at the start and {end[name]} at the end"
        for name in ("free pages", "sequences", "cached sequences", "followed sequences")
        if start[name] != end[name]
    ]
    if end["resident bytes"] - middle["resident bytes"] > MAX_GROWTH:
        found.append(f"leak: {(end['resident bytes'] - middle['resident bytes']) / 1e6:.0f} MB since the middle")
    return found


def report(findings: Findings, service: Service, sizes: Sequence[dict[str, int]], seconds: float) -> None:
    stats, gaps = service.stats(), sorted(findings.gaps)
    print(
        f"{findings.reasons.total()} requests, {findings.num_tokens} tokens, {stats.num_steps} steps in {seconds:.0f} s"
    )
    print("ends:", ", ".join(f"{reason} {num}" for reason, num in sorted(findings.reasons.items())))
    print(f"preemptions: {stats.num_preemptions}")
    if gaps:
        p50, p99 = gaps[len(gaps) // 2], gaps[int(len(gaps) * 0.99)]
        print(f"gap between two outputs: p50 {p50:.0f} ms, p99 {p99:.0f} ms, largest {gaps[-1]:.0f} ms", end=" ")
        print(f"in a step of {findings.largest[1]}; {findings.longest_wait:.0f} ms with preemptions")
    print(f"integrity: {findings.num_checks} checks, {stats.num_integrity_failures} failures of the engine's own")
    for name in sizes[0]:
        print(f"{name}:", " → ".join(f"{size[name]:,}" for size in sizes))
    print(f"{len(findings.samples)} answers compared with the request alone")
    for problem in findings.problems:
        print("FOUND", problem)
    print("nothing found" if not findings.problems else f"{len(findings.problems)} findings")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = Random(arguments.seed)
    with open_model(arguments.model) as model:
        tokenizer = model.tokenizer()
        runtime = NativeRuntime.load(model, NativeOptions(max_length=MAX_LENGTH, num_pages=NUM_PAGES))
    soak = Soak(Traffic(tokenizer, MAX_LENGTH, random), random)
    service = SteppedEngine(runtime, tokenizer, soak.observe)
    sizes = []
    for part in (0.1, 0.45, 0.45):  # the first one warms up
        try:
            soak.run(service, arguments.seconds * part)
            soak.drain(service)
        except (IntegrityError, UnsoundEngineError) as error:
            soak.findings.problems.append(f"integrity: {error}")
        sizes.append({**service.sizes(), "resident bytes": resident_bytes()})
    findings = soak.findings
    findings.problems += growth(sizes) + mismatches(runtime, tokenizer, findings.samples)
    if service.stats().num_integrity_failures:
        findings.problems.append("integrity: the engine is unsound")
    report(findings, service, sizes, arguments.seconds)
    return 1 if findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
