"""What drawing tokens costs: the compiled sampler on rows of logits, of two vocabularies and several shapes.

    python benchmarks/sampling.py [--rounds R] [--threads N] [--isa NAME] [--json OUT]

Rows are of two shapes. `peaked` is what models mostly give: normal logits of deviation 2.5 and a few tokens far above
them. `flat` is the hard case: normal logits of deviation 1, of which top-p keeps two thirds. The settings take turns in
every round, each with keys of its own, so that a slow spell hits all alike.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from provenance import provenance

from paceline.runtime.native import runnable_isas

SETTINGS = {
    "greedy": {"temperature": 0.0},
    "temperature 0.8, top_p 0.95": {"temperature": 0.8, "top_p": 0.95},
    "temperature 0.8, top_k 50": {"temperature": 0.8, "top_k": 50},
    "temperature 0.8, min_p 0.05": {"temperature": 0.8, "min_p": 0.05},
    "temperature 1": {"temperature": 1.0},
}
SHAPES = {"peaked": 2.5, "flat": 1.0}
SIZES = ((4, 151_936), (1, 49_152))  # rows, vocabulary


def make_rows(num_rows: int, vocab_size: int, shape: str) -> NDArray[np.float32]:
    random = np.random.default_rng(vocab_size)
    rows = random.normal(0, SHAPES[shape], (num_rows, vocab_size)).astype(np.float32)
    if shape == "peaked":
        for row in rows:
            row[random.integers(0, vocab_size, 12)] = 22 - np.arange(12, dtype=np.float32) * 0.7
    return rows


def make_decoder(num_threads: int, isa: str) -> object:
    """A decoder of one tiny layer, for its threads."""
    from paceline import _native

    config = _native.DecoderConfig()
    sizes = {"num_layers": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 1, "num_kv_heads": 1}
    sizes |= {"head_dim": 32, "vocab_size": 32, "rope_dim": 32, "max_length": 16, "max_rows": 1, "max_logits_rows": 1}
    for name, number in {**sizes, "num_pages": 1, "num_threads": num_threads}.items():
        setattr(config, name, number)
    config.rope_frequencies, config.rope_magnitudes = [[1.0] * 16], [1.0]
    config.layer_ropes, config.layer_windows = [0], [0]
    config.attention_scale, config.embedding_scale, config.rms_norm_eps, config.isa = 1.0, 1.0, 1e-5, isa
    return _native.Decoder(config)


def make_cases(num_threads: int, isa: str) -> dict[str, Callable[[int], float]]:
    """By name: from a round to the milliseconds of its draws."""
    from paceline.acceptance.reference import DrawParams
    from paceline.acceptance.sampling import Draw, NativeSampler

    decoder = make_decoder(num_threads, isa)
    cases: dict[str, Callable[[int], float]] = {}
    for num_rows, vocab_size in SIZES:
        sampler = NativeSampler(vocab_size, isa, decoder=decoder, num_threads=num_threads)  # type: ignore[arg-type]
        for shape in SHAPES:
            rows = make_rows(num_rows, vocab_size, shape)
            for name, setting in SETTINGS.items():
                params = DrawParams(**setting)  # type: ignore[arg-type]

                def measure(
                    step: int,
                    sampler: NativeSampler = sampler,
                    rows: NDArray[np.float32] = rows,
                    params: DrawParams = params,
                ) -> float:
                    indices = range(len(rows))
                    draws = [Draw(params, 7, step * len(rows) + i) for i in indices]
                    sampler.sample_rows(
                        rows, indices, draws
                    )  # into the caches, and the threads awake, as after a forward
                    start = time.perf_counter()
                    sampler.sample_rows(rows, indices, draws)
                    return (time.perf_counter() - start) * 1e3

                cases[f"{num_rows} x {vocab_size}, {shape}, {name}"] = measure
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--isa", default="auto", help="one of paceline.runtime.native.runnable_isas")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    isa = runnable_isas()[0] if arguments.isa == "auto" else arguments.isa
    cases = make_cases(arguments.threads, isa)
    times: dict[str, list[float]] = {name: [] for name in cases}
    for step in range(arguments.rounds):
        for name, measure in cases.items():
            times[name].append(measure(step))
    for name, values in times.items():
        low, median, high = statistics.quantiles(values, n=4)
        print(f"{name:50} {median:7.3f} ms ({low:.3f} to {high:.3f})")
    if arguments.json:
        arguments.json.write_text(json.dumps({"provenance": provenance(), "isa": isa, "milliseconds": times}))


if __name__ == "__main__":
    main()
