"""A runtime without weights that still depends on its cache: "keys and values" of a slot are a token and a position.

A forward reads them back through pages, slots and ancestors, so a stale slot, a wrong page or a rejected row that was
kept changes the logits or raises CorruptCacheError.
"""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.runtime.base import Runtime, RuntimeInfo, Scores, Segment
from paceline.testing.segments import check_pages, check_segments
from paceline.testing.tables import LogitsTable

NEVER_WRITTEN = -1


class CorruptCacheError(AssertionError):
    """A row saw a slot that was never written, or one that holds another position than the row's path says."""


class TableModel(Runtime):
    """`table` decides the logits; a row's path is all that it sees.

    `num_padding`: ids behind the vocabulary, with logits that beat every real one; nothing may ever produce them.
    `nan_at`: positions whose rows get NaN for logits. Hidden states of layer l: token, position, l and a sum over the
    row's path.
    """

    def __init__(
        self,
        table: LogitsTable,
        vocab_size: int,
        *,
        num_padding: int = 0,
        num_pages: int = 16,
        page_size: int = 4,
        max_length: int = 64,
        max_rows: int = 32,
        max_logits_rows: int = 32,
        nan_at: Collection[int] = (),
    ) -> None:
        self._table = table
        self._nan_at = frozenset(nan_at)
        self._info = RuntimeInfo(
            name="table",
            vocab_size=vocab_size,
            padded_vocab_size=vocab_size + num_padding,
            num_layers=2,
            hidden_size=4,
            max_length=max_length,
            max_rows=max_rows,
            max_logits_rows=max_logits_rows,
            page_size=page_size,
            num_pages=num_pages,
        )
        self._slots = np.full((num_pages, page_size, 2), NEVER_WRITTEN, np.int64)  # token, position

    @property
    def info(self) -> RuntimeInfo:
        return self._info

    def forward(self, segments: Sequence[Segment]) -> Scores:
        check_segments(segments, self._info)
        for segment in segments:
            self._write(segment)
        rows = tuple((segment.sequence, row) for segment in segments for row in segment.logits_rows)
        logits = np.empty((len(rows), self._info.padded_vocab_size), np.float32)
        wanted = [(segment, row) for segment in segments for row in segment.logits_rows]
        for i, (segment, row) in enumerate(wanted):
            logits[i] = self._logits(self._read(segment, row))
        return Scores(logits, rows, self._hidden(segments))

    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None:
        check_pages(pages, self._info)
        for source, destination in moves:
            self._slots[self._where(pages, destination)] = self._slots[self._where(pages, source)]

    def copy_page(self, source: int, destination: int) -> None:
        check_pages((source, destination), self._info)
        self._slots[destination] = self._slots[source]

    def _where(self, pages: Sequence[int], slot: int) -> tuple[int, int]:
        page, offset = divmod(slot, self._info.page_size)
        return pages[page], offset

    def _write(self, segment: Segment) -> None:
        if segment.is_write_suppressed:
            return
        for row, (token, position) in enumerate(zip(segment.tokens, segment.positions(), strict=True)):
            self._slots[self._where(segment.pages, segment.length + row)] = token, position

    def _read(self, segment: Segment, row: int) -> tuple[int, ...]:
        """The tokens that `row` sees, its own last, out of the store."""
        length, size = segment.length, self._info.page_size
        pages = list(segment.pages[: -(-length // size)])
        committed = self._slots[pages].reshape(-1, 2)[:length]
        own = [self._slots[self._where(segment.pages, length + ancestor)] for ancestor in segment.path_to(row)]
        seen = np.concatenate([committed, own])
        wrong = np.flatnonzero((seen[:, 0] == NEVER_WRITTEN) | (seen[:, 1] != np.arange(len(seen))))
        if wrong.size:
            token, position = seen[wrong[0]]
            raise CorruptCacheError(
                f"row {row} of sequence {segment.sequence} sees token {token} of position {position} at {wrong[0]}"
            )
        return tuple(seen[:, 0].tolist())

    def _logits(self, seen: tuple[int, ...]) -> NDArray[np.float32]:
        if len(seen) - 1 in self._nan_at:
            return np.full(self._info.padded_vocab_size, np.nan, np.float32)
        real = self._table(seen)
        padding = np.full(self._info.padded_vocab_size - len(real), float(np.max(real)) + 100, np.float32)
        return np.concatenate([real, padding])

    def _hidden(self, segments: Sequence[Segment]) -> NDArray[np.float32] | None:
        asking = [segment for segment in segments if segment.hidden_layers]
        if not asking:
            return None
        rows = []
        for segment in asking:
            for row in range(len(segment.tokens)):
                seen = self._read(segment, row)
                states = [(seen[-1], len(seen) - 1, layer, sum(seen)) for layer in segment.hidden_layers]
                rows.append(states)
        return np.array(rows, np.float32)
