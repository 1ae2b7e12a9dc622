"""One engine in a process of its own: reads a task a line from standard input, answers with seconds, as JSON.

    python workers.py paceline|llama.cpp MODEL.gguf THREADS

Two engines in one process would share processors with each other's waiting threads; two processes that take turns do
not. Tasks: {"task": "decode", "num_tokens": n}, {"task": "prefill", "num_tokens": n}, {"task": "rows", "n": n,
"context": c}.
"""

import json
import sys
import time
from typing import Protocol

PROMPT = list(range(1000, 1032))  # arbitrary ids; both engines get the same


class Engine(Protocol):
    def decode(self, num_tokens: int) -> float:
        """Seconds for `num_tokens` greedy tokens, one forward each, after a prompt of 32."""

    def prefill(self, num_tokens: int) -> float:
        """Seconds from a prompt's tokens to the logits of its last."""

    def rows(self, n: int, context: int) -> float:
        """Seconds for one forward of n consecutive rows that all want logits, behind `context` positions."""


class Paceline:
    def __init__(self, model: str, num_threads: int) -> None:
        from paceline.models import open_model
        from paceline.runtime.native import NativeOptions, NativeRuntime

        with open_model(model) as opened:
            self.runtime = NativeRuntime.load(opened, NativeOptions(max_length=2048, num_threads=num_threads))
        self.pages = tuple(range(128))
        self.runtime.fill_pages(self.pages)

    def forward(self, length: int, tokens: list[int], num_logits: int) -> int:
        from paceline.runtime.base import Segment

        rows = tuple(range(len(tokens) - num_logits, len(tokens)))
        logits = self.runtime.forward([Segment(0, length, self.pages, tuple(tokens), logits_rows=rows)]).logits
        return int(logits[-1].argmax()) if num_logits else 0

    def decode(self, num_tokens: int) -> float:
        token = self.forward(0, PROMPT, 1)
        start = time.perf_counter()
        for i in range(num_tokens):
            token = self.forward(32 + i, [token], 1)
        return time.perf_counter() - start

    def prefill(self, num_tokens: int) -> float:
        chunk = self.runtime.info.max_rows
        start = time.perf_counter()
        for begin in range(0, num_tokens, chunk):
            size = min(chunk, num_tokens - begin)
            self.forward(begin, list(range(1000, 1000 + size)), int(begin + size == num_tokens))
        return time.perf_counter() - start

    def rows(self, n: int, context: int) -> float:
        start = time.perf_counter()
        self.forward(context, list(range(1000, 1000 + n)), n)
        return time.perf_counter() - start


class LlamaCpp:
    def __init__(self, model: str, num_threads: int) -> None:
        import llama_cpp

        self.api = llama_cpp
        self.llama = llama_cpp.Llama(
            model,
            n_ctx=2048,
            n_batch=512,
            n_ubatch=512,
            n_threads=num_threads,
            n_threads_batch=num_threads,
            verbose=False,
        )
        self.context = self.llama.ctx
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.batch = llama_cpp.llama_batch_init(512, 0, 1)
        self.filled = 0

    def forward(self, length: int, tokens: list[int], num_logits: int) -> int:
        import numpy as np

        api, batch = self.api, self.batch
        api.llama_memory_seq_rm(self.memory, 0, length, -1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, length + i, 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = i >= len(tokens) - num_logits
        if api.llama_decode(self.context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        if num_logits == 0:
            return 0
        logits = api.llama_get_logits_ith(self.context, len(tokens) - 1)
        return int(np.ctypeslib.as_array(logits, shape=(self.llama.n_vocab(),)).argmax())

    def decode(self, num_tokens: int) -> float:
        token = self.forward(0, PROMPT, 1)
        start = time.perf_counter()
        for i in range(num_tokens):
            token = self.forward(32 + i, [token], 1)
        seconds = time.perf_counter() - start
        self.filled = 0
        return seconds

    def prefill(self, num_tokens: int) -> float:
        start = time.perf_counter()
        for begin in range(0, num_tokens, 512):
            size = min(512, num_tokens - begin)
            self.forward(begin, list(range(1000, 1000 + size)), int(begin + size == num_tokens))
        self.filled = 0
        return time.perf_counter() - start

    def rows(self, n: int, context: int) -> float:
        if self.filled != context:
            for begin in range(0, context, 512):
                size = min(512, context - begin)
                self.forward(begin, list(range(1000, 1000 + size)), 0)
            self.filled = context
        start = time.perf_counter()
        self.forward(context, list(range(1000, 1000 + n)), n)
        return time.perf_counter() - start


def answer(engine: Engine, task: dict[str, object]) -> float:
    match task:
        case {"task": "decode", "num_tokens": int(num_tokens)}:
            return engine.decode(num_tokens)
        case {"task": "prefill", "num_tokens": int(num_tokens)}:
            return engine.prefill(num_tokens)
        case {"task": "rows", "n": int(n), "context": int(context)}:
            return engine.rows(n, context)
        case _:
            raise ValueError(f"unknown task {task}")


def main() -> None:
    name, model, num_threads = sys.argv[1:]
    engine: Engine = {"paceline": Paceline, "llama.cpp": LlamaCpp}[name](model, int(num_threads))
    for line in sys.stdin:
        print(json.dumps(answer(engine, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
