"""Results of benchmarks that nobody ran, for the tests of reports."""

from collections.abc import Sequence
from dataclasses import fields, replace

from paceline.bench.result import Advice, Difference, ReplayRun, Result, Run, Spread

HOSTILE = "<script>alert('x')</script>&\"$x_2$|`*[[a](javascript:b)\x1b[31m\x00\ud800\u202e日本語"

_NOTHING = Spread()


def plain_run(
    task_class: str = "all", mode: str = "off", concurrency: int | None = 1, rate: float | None = None
) -> Run:
    """A run of which as little is known as can be."""
    return Run(
        task_class=task_class,
        mode=mode,
        concurrency=concurrency,
        request_rate=rate,
        num_blocks=3,
        num_answers=6,
        num_errors=0,
        num_output_tokens=384,
        output_tokens_per_second=None,
        macro_tokens_per_second=None,
        speedup=None,
        speedup_ci=None,
        verdict=None,
        request_speedup=None,
        request_speedup_ci=None,
        macro_speedup=None,
        mean_acceptance_length=None,
        draft_acceptance_rate=None,
        acceptance_by_position=(),
        num_draft_tokens_chosen={},
        identical_fraction=None,
        ttft_ms=_NOTHING,
        tpot_ms=_NOTHING,
        chunk_gap_ms=_NOTHING,
        e2e_ms=_NOTHING,
        goodput=None,
        time_share={},
        memory_bytes={},
        ceiling=None,
        looping_fraction=None,
        speedup_without_loops=None,
        energy_joules_per_token=None,
        cost_per_million_tokens=None,
    )


def full_run(
    task_class: str, mode: str, concurrency: int | None, rate: float | None = None, *, speedup: float | None = None
) -> Run:
    """A run of which everything is known; `speedup` None is plain decoding's."""
    load = concurrency or 2 * (rate or 0)
    verdict = None if speedup is None else "faster" if speedup > 1.08 else "slower" if speedup < 0.92 else "undecided"
    tokens = 61.3 * load**0.6 * (speedup or 1)
    common = replace(
        plain_run(task_class, mode, concurrency, rate),
        num_blocks=30,
        num_answers=120,
        num_output_tokens=15360,
        output_tokens_per_second=tokens,
        macro_tokens_per_second=tokens / load,
        ttft_ms=Spread(41.5 * load, 40.25 * load, 55.5 * load, 71.75 * load),
        tpot_ms=Spread(1021 * load / tokens, 1000 * load / tokens, 1200 * load / tokens, 1500 * load / tokens),
        chunk_gap_ms=Spread(18.1, 17.2, 24.3, 39.4),
        e2e_ms=Spread(1950 * load, 1900 * load, 2500 * load, 3100 * load),
        goodput=0.47 * load**0.6,
        memory_bytes={"target": 98_000_000, "caches": 23_600_000},
        looping_fraction=0.025,
        energy_joules_per_token=0.31,
        cost_per_million_tokens=0.42,
        time_share={"draft": 0.0, "verify": 0.93, "host": 0.07},
    )
    if speedup is None:
        return common
    return replace(
        common,
        speedup=speedup,
        speedup_ci=(speedup - 0.09, speedup + 0.1),
        verdict=verdict,
        request_speedup=0.95 * speedup,
        request_speedup_ci=(0.95 * speedup - 0.11, 0.95 * speedup + 0.12),
        macro_speedup=speedup + 0.015,
        mean_acceptance_length=1.1 + speedup,
        draft_acceptance_rate=min(0.39 * speedup, 0.97),
        acceptance_by_position=tuple(min(0.97, speedup * factor) for factor in (0.55, 0.5, 0.43, 0.37)),
        num_draft_tokens_chosen={"0": 0.25, "2": 0.25, "4": 0.4, "10": 0.1},
        identical_fraction=1.0,
        memory_bytes={"target": 98_000_000, "proposer": 1_300_000, "caches": 23_600_000},
        ceiling=max(1.0, 3.2 / load**0.55),
        speedup_without_loops=speedup - 0.02,
        time_share={"draft": 0.045, "verify": 0.87, "host": 0.085},
    )


def full_result(
    classes: Sequence[str] = ("chat", "code editing", "extraction", "summary of a long document"),
    modes: Sequence[str] = ("ngram-4", "suffix-8", "auto"),
    concurrencies: Sequence[int] = (1, 2, 4, 8),
    rates: Sequence[float] = (0.5, 1.0, 2.0),
) -> Result:
    runs = []
    for concurrency, rate in [*((c, None) for c in concurrencies), *((None, r) for r in rates)]:
        for place, task_class in enumerate(("all", *classes)):
            runs.append(full_run(task_class, "off", concurrency, rate))
            for other, mode in enumerate(modes):
                gain = (0.34, 0.02, 1.25, 0.48, 0.15)[place % 5] * (0.7, 0.85, 1.0)[other % 3]
                speedup = 1 + gain / (concurrency or 2) ** 0.8 - 0.04 * other
                runs.append(full_run(task_class, mode, concurrency, rate, speedup=speedup))
    return Result(
        provenance={
            "paceline": "0.1.0",
            "model": "SmolLM2-135M-Instruct.Q4_1.gguf",
            "machine": {"cpu": "AMD EPYC 7B13", "threads": 2, "isa": "avx2"},
            "when": "2026-11-30T08:00:00Z",
            "command": "paceline bench -m smollm2 --modes ngram-4,suffix-8,auto",
        },
        fingerprint={"model_sha256": "b179c9523d0e6a0f98a330c7562b6827", "machine": "AMD EPYC 7B13/2"},
        settings={"workload": "mixed", "modes": list(modes), "seed": 0, "max_tokens": 128, "rates": list(rates)},
        runs=runs,
        forward_ms={"1": 7.1, "2": 7.2, "4": 8.9, "8": 16.2, "16": 30.4},
        floor_ms=4.4,
        differences=[Difference("ngram-4", "edit-7", 0, 31, 284, None, "return self._runs[")],
        replay=[
            ReplayRun("chat", "ngram", k, 40, 5120, 1 + k / 6, 0.41 - k / 40, (0.5, 0.42, 0.31)[:k], 1.02 + k / 50)
            for k in (1, 2, 3)
        ],
        advice=[
            Advice("extraction", "auto", 4, 4, "1.9 (1.8 to 2.0) at c=1, undecided from 8 on"),
            Advice("chat", "off", 0, None, "no mode was faster at any load"),
        ],
        notes=["2 answers of 120 end in a repetition.", "Energy was read from RAPL."],
    )


def minimal_result() -> Result:
    """Plain decoding alone, and next to nothing known of it."""
    return Result(provenance={}, fingerprint={}, settings={}, runs=[plain_run()])


def hostile_result() -> Result:
    """Every string that can come from a model, a prompt or a file is one that does harm where it is not escaped."""
    found = full_result(
        classes=(HOSTILE, f"b{HOSTILE * 5}"), modes=(HOSTILE, f"m{HOSTILE}"), concurrencies=(1, 2), rates=()
    )
    return replace(
        found,
        provenance={HOSTILE: HOSTILE, "model": HOSTILE},
        settings={HOSTILE: {HOSTILE: [HOSTILE]}},
        fingerprint={HOSTILE: HOSTILE},
        runs=[replace(run, memory_bytes={HOSTILE: 1}, time_share={HOSTILE: 1.0}) for run in found.runs],
        differences=[
            Difference(HOSTILE, HOSTILE, 0, 3, HOSTILE, HOSTILE, HOSTILE),
            Difference("m", "</td></table></main></html>", 1, 0, "\n\n", None, "a\r\nb\u2028c"),
        ],
        replay=[ReplayRun(HOSTILE, HOSTILE, 4, 1, 1, None, None, (), None)],
        advice=[Advice(HOSTILE, HOSTILE, 4, None, HOSTILE)],
        notes=[HOSTILE],
    )


def without(run: Run, name: str) -> Run:
    """The run with one figure unknown."""
    empty = getattr(plain_run(), name)
    return replace(run, **{name: empty})


def figure_names() -> list[str]:
    """What of a run can be unknown."""
    keys = ("task_class", "mode", "concurrency", "request_rate")
    return [field.name for field in fields(Run) if field.name not in keys and not field.name.startswith("num_")]
