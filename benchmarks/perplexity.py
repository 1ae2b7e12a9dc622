"""The perplexity of a model on a text: what quantisation does to it.

    python benchmarks/perplexity.py MODEL [--quantization q8|q4|none] [--text FILE] [--max-tokens N] [--json OUT]

The text, by default the questions of tests/data/spec_bench_subset.jsonl, is cut into windows of 512 tokens, each scored
from its second token on with nothing before it. The forward is the product's own: inputs of quantised weights are
rounded to 8 bits, keys and values to float16.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
from provenance import provenance

WINDOW = 512  # tokens
QUESTIONS = Path(__file__).parent.parent / "tests" / "data" / "spec_bench_subset.jsonl"


def default_text() -> str:
    questions = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
    return "\n\n".join(turn for question in questions for turn in question["turns"])


def negative_log_likelihoods(logits: np.ndarray, ids: list[int]) -> np.ndarray:
    """Of each token in `ids`, by the row of logits before it."""
    scores = logits.astype(np.float64)
    highest = scores.max(axis=1)
    log_total = highest + np.log(np.exp(scores - highest[:, None]).sum(axis=1))
    return log_total - scores[np.arange(len(ids)), ids]


def measure(model: str, quantization: str | None, text: str, max_tokens: int) -> dict[str, object]:
    from paceline.models import open_model
    from paceline.runtime.base import Segment
    from paceline.runtime.native import NativeOptions, NativeRuntime

    with open_model(model, quantization=quantization) as opened:
        tokenizer = opened.tokenizer()
        options = NativeOptions(max_length=WINDOW, max_rows=WINDOW, max_logits_rows=WINDOW)
        start = time.perf_counter()
        runtime = NativeRuntime.load(opened, options)
        load_seconds = time.perf_counter() - start
        weight_bytes = sum(info.num_bytes for info in opened.tensors.values())
    ids = tokenizer.encode(text)[:max_tokens]
    losses = []
    for first in range(0, len(ids) - 1, WINDOW):
        window = ids[first : first + WINDOW]
        pages = tuple(range(-(-len(window) // runtime.info.page_size)))
        segment = Segment(0, 0, pages, tuple(window), logits_rows=tuple(range(len(window) - 1)))
        logits = runtime.forward([segment]).logits[:, : runtime.info.vocab_size]
        losses.append(negative_log_likelihoods(logits, window[1:]))
    loss = np.concatenate(losses)
    return {
        "model": model,
        "quantization": quantization,
        "perplexity": math.exp(loss.mean()),
        "num_scored": len(loss),
        "weight_bytes": weight_bytes,
        "load_seconds": load_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--quantization", choices=["q8", "q4", "none"])
    parser.add_argument("--text", type=Path)
    parser.add_argument("--max-tokens", type=int, default=4096)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    text = arguments.text.read_text() if arguments.text else default_text()
    found = measure(arguments.model, arguments.quantization, text, arguments.max_tokens)
    print(
        f"perplexity {found['perplexity']:.3f} over {found['num_scored']} tokens, weights {found['weight_bytes']} bytes"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps({**provenance(), **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
