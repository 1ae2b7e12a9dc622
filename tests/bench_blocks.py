"""Blocks, answers and runs whose figures are known by construction."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from paceline.bench.base import Answer, Block, Chunk, Counts, Load, Mode, Observation
from paceline.bench.result import Run, Spread

ONE = Load(concurrency=1)
OFF_MODE = Mode("off")
NGRAM = Mode("ngram-4", "ngram", 4)


def answer(
    num_tokens: int = 11,
    *,
    ttft: float = 0.5,
    tpot: float = 0.1,
    first: int = 1,
    per_chunk: int = 1,
    counts: Counts | None = None,
    ids: Iterable[int] | None = None,
    text: str = "",
) -> Answer:
    """`first` tokens after `ttft` seconds, then `per_chunk` tokens every `per_chunk` · `tpot` seconds."""
    chunks, left, time = [Chunk(ttft, first)], num_tokens - first, ttft
    while left > 0:
        size = min(per_chunk, left)
        time, left = time + size * tpot, left - size
        chunks.append(Chunk(time, size))
    known = tuple(range(num_tokens)) if ids is None else tuple(ids)
    return Answer(5, num_tokens, tuple(chunks), text, known, counts=counts)


def failed() -> Answer:
    return Answer(5, 0, (), "", error="the connection was lost")


def block(mode: str, index: int, *answers: Answer, load: Load = ONE, task_class: str = "code", **fields: Any) -> Block:
    """One item for each answer; answers one after the other, unless `seconds` says otherwise."""
    seen = tuple(Observation(f"{task_class}-{index}-{i}", 0, 0, each) for i, each in enumerate(answers))
    seconds = fields.pop("seconds", sum(each.e2e for each in answers if each.chunks))
    return Block(index, task_class, mode, load, seconds, seen, **fields)


def pair(index: int, off: Answer, mode: Answer, *, name: str = "ngram-4", **fields: Any) -> list[Block]:
    return [block("off", index, off, **fields), block(name, index, mode, **fields)]


def run(**fields: Any) -> Run:
    """A run of nothing, but for `fields`."""
    nothing = dict.fromkeys(Run.__dataclass_fields__)
    empty = {
        "task_class": "all",
        "mode": "ngram-4",
        "concurrency": 1,
        "num_blocks": 10,
        "num_answers": 10,
        "num_errors": 0,
        "num_output_tokens": 100,
        "acceptance_by_position": (),
        "num_draft_tokens_chosen": {},
        "time_share": {},
        "memory_bytes": {},
        **dict.fromkeys(("ttft_ms", "tpot_ms", "chunk_gap_ms", "e2e_ms"), Spread()),
    }
    return Run(**{**nothing, **empty, **fields})


def renamed(blocks: Iterable[Block], mode: str) -> list[Block]:
    return [replace(each, mode=mode) for each in blocks]
