"""The contract of a runtime: one target forward over any mixture of rows, over pages that it does not manage.

A runtime knows token ids, positions and slots. It knows no text, no request, no draft and no acceptance rule; which
pages belong to whom is decided above it (`paceline.cache`).

Vocabulary, for a sequence whose first `length` positions are committed:

- **row**: one token of a forward. The rows of a sequence form a *segment*: first a *run* at consecutive positions
  `[length, length + num_run)`, then optionally a *tree tail* whose nodes name their parents.
- **position**: what the model is told about order. Row r of the run has position `length + r`; a tree node has its
  parent's position + 1, so two children of one node share a position.
- **slot**: where a row's keys and values lie. Row r of a segment has slot `length + r`, tree node or not. Slot s lies
  in page `pages[s // page_size]` at offset `s % page_size`.

A row sees slots `[0, length)`, then its own ancestors in the segment and itself, nothing else. So prefill chunks, plain
decoding, chains and trees are one call. The newest token of a sequence is not in the cache yet: the run starts with it.

**Row invariance**, which every runtime used for the rule `match` keeps: a row's logits are the same bits whatever other
rows, segments, chunks, pages or threads ride with it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.value import value


@value
class Segment:
    """One sequence's rows in a forward.

    `parents` holds one entry for each node of the tree tail, in row order: the row index, within this segment, of the
    node's parent. A parent is the last row of the run or an earlier node. Empty for prefill, plain decoding and chains.

    `logits_rows` and `hidden_layers` say what is wanted back: ascending row indices, and layer indices where 0 is the
    embedding and i the output of layer i. `is_write_suppressed` serves a full prefix hit, which runs the last prompt
    token again: the row reads the keys and values already stored in its own slot and writes nothing.
    """

    sequence: int
    length: int
    pages: tuple[int, ...]
    tokens: tuple[int, ...]
    parents: tuple[int, ...] = ()
    logits_rows: tuple[int, ...] = ()
    hidden_layers: tuple[int, ...] = ()
    is_write_suppressed: bool = False

    @property
    def num_run(self) -> int:
        return len(self.tokens) - len(self.parents)

    def positions(self) -> list[int]:
        """The position of every row, in row order."""
        positions = list(range(self.length, self.length + self.num_run))
        for parent in self.parents:
            positions.append(positions[parent] + 1)
        return positions

    def path_to(self, row: int) -> list[int]:
        """The rows from row 0 to `row`: the run up to it, or the whole run and the node's ancestors; `row` is last."""
        path: list[int] = []
        while row >= self.num_run:
            path.append(row)
            row = self.parents[row - self.num_run]
        path.extend(range(row, -1, -1))
        return path[::-1]


@value
class Scores:
    """What a forward returns. Owned by the runtime and valid until its next forward.

    `logits` is float32 `[rows wanted, padded vocabulary]`; ids at or past `RuntimeInfo.vocab_size` are padding and must
    never be produced. `rows[i]` is the (sequence, row in its segment) that result row i belongs to, in the order of
    the segments and, within one, of `logits_rows`. `hidden` is float32 `[rows, layers, width]` over all rows of the
    segments that asked for hidden states, or None.
    """

    logits: NDArray[np.float32]
    rows: tuple[tuple[int, int], ...]
    hidden: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class RuntimeInfo:
    """The fixed figures of a runtime, known before its first forward.

    `max_length` is the number of positions that one sequence may hold (the model's context or the configured capacity,
    the smaller). `max_rows` bounds the rows of one forward, `max_logits_rows` those of them that want logits.
    """

    name: str
    vocab_size: int
    padded_vocab_size: int
    num_layers: int
    hidden_size: int
    max_length: int
    max_rows: int
    max_logits_rows: int
    page_size: int
    num_pages: int


class Runtime(ABC):
    """A model that can be run forward over pages.

    Implementations are not thread-safe: one caller at a time. They may release the GIL inside `forward`.
    """

    @property
    @abstractmethod
    def info(self) -> RuntimeInfo: ...

    @abstractmethod
    def forward(self, segments: Sequence[Segment]) -> Scores:
        """Run all rows of `segments` and store their keys and values in the rows' slots.

        A sequence appears at most once. Slots of committed positions are only read. Raises ValueError, before anything
        is written, for a row count beyond `max_rows`, a token outside the padded vocabulary, a slot outside the pages
        given, a page outside the store, or a parent that does not precede its child. Numbers that are not finite are
        returned as they are; ending that sequence is the caller's work.
        """

    @abstractmethod
    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None:
        """Copy keys and values of all layers from slot to slot within one sequence's `pages`, in the order given.

        Used to bring the accepted path of a tree into place; the order makes overlapping moves safe when every
        destination lies at or before its source.
        """

    @abstractmethod
    def copy_page(self, source: int, destination: int) -> None:
        """Copy one whole page, all layers (copy on write for forked sequences)."""
