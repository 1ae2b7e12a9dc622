"""The engines' side of compare.py: a process with one engine that answers tasks from standard input, a JSON line each.

    python benchmarks/workers.py ENGINE MODEL THREADS CAPACITY

The first line of output holds the engine's facts. Tasks: {"task": "decode", "num_tokens": n}, {"task": "prefill",
"num_tokens": n}, {"task": "rows", "n": n, "context": c}, all answered in seconds, and {"task": "greedy", "prompt":
[ids], "num_tokens": n}, answered with ids.
"""

import json
import os
import sys
import time

from engines import Engine, create_engine

LEAST_SECONDS = 0.05  # shorter forwards are repeated and averaged


class Session:
    """One sequence of an engine, most of it the same arbitrary ids for every engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.num_known = 0  # cached positions, from 0 on, that hold `ids`

    def ids(self, begin: int, end: int) -> list[int]:
        return [(1000 + position) % self.engine.vocab_size for position in range(begin, end)]

    def need(self, length: int) -> None:
        """Fill the cache up to `length` where it is not."""
        if self.num_known < length:
            self.engine.forward(0, self.ids(0, length), 0)
            self.num_known = length

    def prefill(self, num_tokens: int) -> float:
        """Seconds from a prompt's tokens to the logits of its last."""
        self.engine.forward(0, self.ids(0, 1), 1)  # wakes the threads
        start = time.perf_counter()
        self.engine.forward(0, self.ids(0, num_tokens), 1)
        seconds = time.perf_counter() - start
        self.num_known = num_tokens
        return seconds

    def rows(self, n: int, context: int) -> float:
        """Seconds for one forward of n consecutive rows that all want logits, behind `context` positions."""
        self.need(context)
        tokens = self.ids(context, context + n)
        self.engine.forward(context, tokens, n)  # wakes the threads; engines keep the graph of the last forward's shape
        num_forwards, start = 0, time.perf_counter()
        while time.perf_counter() - start < LEAST_SECONDS:
            self.engine.forward(context, tokens, n)
            num_forwards += 1
        seconds = (time.perf_counter() - start) / num_forwards
        self.num_known = context + n
        return seconds

    def decode(self, num_tokens: int) -> float:
        """Seconds for each of `num_tokens` greedy tokens, one forward each, after a prompt of 32."""
        token = self.engine.forward(0, self.ids(0, 32), 1)
        start = time.perf_counter()
        for position in range(32, 32 + num_tokens):
            token = self.engine.forward(position, [token], 1)
        seconds = time.perf_counter() - start
        self.num_known = 32
        return seconds / num_tokens

    def greedy(self, prompt: list[int], num_tokens: int) -> list[int]:
        tokens = [self.engine.forward(0, prompt, 1)]
        while len(tokens) < num_tokens:
            tokens.append(self.engine.forward(len(prompt) + len(tokens) - 1, tokens[-1:], 1))
        self.num_known = 0
        return tokens


def answer(session: Session, task: dict[str, object]) -> float | list[int]:
    match task:
        case {"task": "decode", "num_tokens": int(num_tokens)}:
            return session.decode(num_tokens)
        case {"task": "prefill", "num_tokens": int(num_tokens)}:
            return session.prefill(num_tokens)
        case {"task": "rows", "n": int(n), "context": int(context)}:
            return session.rows(n, context)
        case {"task": "greedy", "prompt": list(prompt), "num_tokens": int(num_tokens)}:
            return session.greedy(prompt, num_tokens)
        case _:
            raise ValueError(f"unknown task {task}")


def main() -> None:
    name, model, num_threads, capacity = sys.argv[1:]
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print; only answers go where answers are read
    engine = create_engine(name, model, int(num_threads), int(capacity))
    session = Session(engine)
    print(json.dumps(engine.facts()), file=replies, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(session, json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    main()
