"""Hands for checking a runtime: fresh dirty pages, forwards that return copies, and plain decoding for comparison."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from paceline.runtime.base import Runtime, Segment
from paceline.testing.ensure import ensure

Rows = NDArray[np.float32]  # [rows, padded vocabulary]


def ensure_same_bits(found: Rows, expected: Rows, promise: str) -> None:
    ensure(found.shape == expected.shape, f"{promise}: shape {found.shape}, expected {expected.shape}")
    differs = (np.ascontiguousarray(found).view(np.uint32) != np.ascontiguousarray(expected).view(np.uint32)).any(1)
    ensure(not differs.any(), f"{promise}: the bits of rows {np.flatnonzero(differs).tolist()} differ")


class RuntimeProbe:
    """Sequences live on random pages that were filled with other text before."""

    def __init__(self, runtime: Runtime, random: Random) -> None:
        self.runtime = runtime
        self.random = random
        self._free = list(range(runtime.info.num_pages))
        self._num_sequences = 0

    def tokens(self, num: int) -> tuple[int, ...]:
        return tuple(self.random.randrange(self.runtime.info.vocab_size) for _ in range(num))

    def take_pages(self, num_slots: int) -> tuple[int, ...]:
        num_pages = -(-num_slots // self.runtime.info.page_size)
        ensure(num_pages <= len(self._free), f"the runtime has too few pages for these sizes: {num_pages} more")
        self.random.shuffle(self._free)
        pages, self._free = tuple(self._free[:num_pages]), self._free[num_pages:]
        self._fill(pages, self.tokens(num_pages * self.runtime.info.page_size))
        return pages

    def give_back(self, *sequences: tuple[int, ...]) -> None:
        for pages in sequences:
            self._free.extend(pages)

    def segment(
        self, pages: tuple[int, ...], length: int, tokens: Sequence[int], parents: Sequence[int] = ()
    ) -> Segment:
        """All rows want logits. `parents` are row indices in the segment."""
        self._num_sequences += 1
        every = tuple(range(len(tokens)))
        return Segment(self._num_sequences, length, pages, tuple(tokens), tuple(parents), logits_rows=every)

    def forward(self, *segments: Segment) -> list[Rows]:
        """Logits by segment, copied out of the runtime."""
        scores = self.runtime.forward(segments)
        expected = tuple((segment.sequence, row) for segment in segments for row in segment.logits_rows)
        ensure(scores.rows == expected, "result rows follow the segments and their logits_rows")
        ensure(scores.logits.dtype == np.float32, "logits are float32")
        width = self.runtime.info.padded_vocab_size
        ensure(scores.logits.shape == (len(expected), width), f"logits are [{len(expected)}, {width}]")
        results, begin = [], 0
        for segment in segments:
            end = begin + len(segment.logits_rows)
            results.append(scores.logits[begin:end].copy())
            begin = end
        return results

    def plainly(self, pages: tuple[int, ...], length: int, tokens: Sequence[int]) -> Rows:
        """One row a forward, from `length` on: what plain decoding computes."""
        rows = [self.forward(self.segment(pages, length + i, (token,)))[0] for i, token in enumerate(tokens)]
        return np.concatenate(rows)

    def read_in(self, pages: tuple[int, ...], tokens: Sequence[int]) -> None:
        """Fill the first slots with `tokens`, in as many forwards as it takes, without asking for logits."""
        self._fill(pages, tokens)

    def _fill(self, pages: tuple[int, ...], tokens: Sequence[int]) -> None:
        step = self.runtime.info.max_rows
        for begin in range(0, len(tokens), step):
            segment = self.segment(pages, begin, tokens[begin : begin + step])
            self.forward(replace(segment, logits_rows=()))
