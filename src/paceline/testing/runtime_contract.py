"""The contract of `Runtime`: every way to run the same tokens gives the same bits, and refusals change nothing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import numpy as np

from paceline.runtime.base import Runtime, Segment
from paceline.testing.ensure import ensure, ensure_raises
from paceline.testing.runtime_probe import Rows, RuntimeProbe, ensure_same_bits


@dataclass(frozen=True, slots=True)
class RuntimeSizes:
    """How much to try. A round costs about `prefix + 4 * num_draft` forwards.

    `prefix`: committed tokens; several pages of them, the last one half full, test most. `num_draft`: rows of a chain
    or tree. All of it must fit `max_rows`, `max_logits_rows` and `max_length`; three sequences must fit the pages.
    """

    prefix: int = 21
    num_draft: int = 6
    num_rounds: int = 3


def check_runtime(
    factory: Callable[[], Runtime],
    sizes: RuntimeSizes | None = None,
    *,
    has_hidden_states: bool = True,
    seed: int = 0,
) -> None:
    """Put one runtime made by `factory` through the contract. Comparisons are exact, bit for bit."""
    contract = _RuntimeContract(RuntimeProbe(factory(), Random(seed)), sizes or RuntimeSizes())
    contract.check_empty()
    for _ in range(contract.sizes.num_rounds):
        contract.check_chunks()
        contract.check_chain()
        contract.check_tree()
        contract.check_neighbours()
        contract.check_write_suppression()
        contract.check_tree_commit()
        contract.check_copied_page()
        if has_hidden_states:
            contract.check_hidden_states()
    contract.check_refusals()


def check_equal_runtimes(one: Runtime, other: Runtime, sizes: RuntimeSizes | None = None, *, seed: int = 0) -> None:
    """Both give the same bits for the same work, such as one model with different numbers of threads."""
    sizes = sizes or RuntimeSizes()
    results = []
    for runtime in (one, other):
        contract = _RuntimeContract(RuntimeProbe(runtime, Random(seed)), sizes)
        results.append([rows for _ in range(sizes.num_rounds) for rows in contract.run_everything()])
    for i, (found, expected) in enumerate(zip(*results, strict=True)):
        ensure_same_bits(found, expected, f"two runtimes agree on result {i}")


class _RuntimeContract:
    def __init__(self, probe: RuntimeProbe, sizes: RuntimeSizes) -> None:
        self.probe = probe
        self.sizes = sizes
        self.random = probe.random
        self.num_slots = sizes.prefix + 2 * sizes.num_draft

    def check_empty(self) -> None:
        ensure(self.probe.forward() == [], "a forward of no segments returns no rows")

    def check_chunks(self) -> None:
        tokens = self.probe.tokens(self.sizes.prefix)
        pages, others = self.probe.take_pages(len(tokens)), self.probe.take_pages(len(tokens))
        expected = self.probe.plainly(pages, 0, tokens)
        (whole,) = self.probe.forward(self.probe.segment(others, 0, tokens))
        ensure_same_bits(whole, expected, "one chunk is plain decoding")
        chunks, begin = [], 0
        while begin < len(tokens):
            end = min(len(tokens), begin + self.random.randint(1, 9))
            chunks += self.probe.forward(self.probe.segment(others, begin, tokens[begin:end]))
            begin = end
        ensure_same_bits(np.concatenate(chunks), expected, "how a prompt is split does not matter")
        self.probe.give_back(pages, others)

    def check_chain(self) -> None:
        pages, length = self._prefix()
        tokens = self.probe.tokens(self.sizes.num_draft)
        expected = self.probe.plainly(pages, length, tokens)
        (chain,) = self.probe.forward(self.probe.segment(pages, length, tokens))
        ensure_same_bits(chain, expected, "a chain is plain decoding")
        (tree,) = self.probe.forward(self.probe.segment(pages, length, tokens, range(len(tokens) - 1)))
        ensure_same_bits(tree, expected, "a tree of one branch is plain decoding")
        some = replace(self.probe.segment(pages, length, tokens), logits_rows=(1, len(tokens) - 1))
        (rows,) = self.probe.forward(some)
        ensure_same_bits(rows, expected[[1, -1]], "logits_rows picks rows")
        self.probe.give_back(pages)

    def check_tree(self) -> None:
        pages, length = self._prefix()
        segment = self._tree(pages, length)
        (found,) = self.probe.forward(segment)
        self._check_against_paths(segment, found, "a tree's node sees its own path and nothing else")
        self.probe.give_back(pages)

    def check_neighbours(self) -> None:
        (pages, length), (others, _) = self._prefix(), self._prefix()
        newcomer = self.probe.take_pages(self.sizes.num_draft)
        tree = self._tree(pages, length)
        chain = self.probe.segment(others, length, self.probe.tokens(2))
        prompt = self.probe.segment(newcomer, 0, self.probe.tokens(self.sizes.num_draft))
        batch = [tree, chain, prompt]
        self.random.shuffle(batch)
        for segment, found in zip(batch, self.probe.forward(*batch), strict=True):
            self._check_against_paths(segment, found, "other sequences in the batch do not matter")
        self.probe.give_back(pages, others, newcomer)

    def check_write_suppression(self) -> None:
        pages, length = self._prefix()
        token, other, following = self.probe.tokens(3)
        expected = self.probe.plainly(pages, length, (token, following))
        again = replace(self.probe.segment(pages, length, (token,)), is_write_suppressed=True)
        ensure_same_bits(self.probe.forward(again)[0], expected[:1], "a suppressed row computes what it did")
        self.probe.forward(replace(again, tokens=(other,)))
        found = self.probe.plainly(pages, length + 1, (following,))
        ensure_same_bits(found, expected[1:], "a suppressed row writes nothing")
        self.probe.give_back(pages)

    def check_tree_commit(self) -> None:
        pages, length = self._prefix()
        segment = self._tree(pages, length)
        self.probe.forward(segment)
        path = segment.path_to(len(segment.tokens) - 1)
        moves = [(length + row, length + i) for i, row in enumerate(path) if row != i]
        self.probe.runtime.copy_slots(pages, moves)
        (token,) = self.probe.tokens(1)
        found = self.probe.plainly(pages, length + len(path), (token,))
        expected = self.probe.plainly(pages, length, (*(segment.tokens[row] for row in path), token))
        ensure_same_bits(found, expected[-1:], "a branch moved into place is as if decoded there")
        self.probe.give_back(pages)

    def check_copied_page(self) -> None:
        pages, length = self._prefix()
        copies = self.probe.take_pages(self.num_slots)
        for source, destination in zip(pages, copies, strict=True):
            self.probe.runtime.copy_page(source, destination)
        tokens = self.probe.tokens(2)
        expected = self.probe.plainly(pages, length, tokens)
        ensure_same_bits(self.probe.plainly(copies, length, tokens), expected, "a copied page holds the same")
        self.probe.give_back(pages, copies)

    def check_hidden_states(self) -> None:
        pages, length = self._prefix()
        layers = (0, self.probe.runtime.info.num_layers)
        tokens = self.probe.tokens(self.sizes.num_draft)
        segment = replace(self.probe.segment(pages, length, tokens), hidden_layers=layers)
        hidden = self._hidden(segment)
        shape = (len(tokens), len(layers), self.probe.runtime.info.hidden_size)
        ensure(hidden.shape == shape, f"hidden states are {shape}, not {hidden.shape}")
        ensure(hidden.dtype == np.float32, "hidden states are float32")
        for i, token in enumerate(tokens):
            row = replace(segment, length=length + i, tokens=(token,), logits_rows=())
            ensure_same_bits(self._hidden(row)[0], hidden[i], "hidden states are those of plain decoding")
        self.probe.give_back(pages)

    def check_refusals(self) -> None:
        """A refused forward writes nothing, not even for the sound segment beside the faulty one."""
        pages, length = self._prefix()
        token, wrong, following = self.probe.tokens(3)
        expected = self.probe.plainly(pages, length, (token, following))
        others = self.probe.take_pages(self.num_slots)
        for what, faulty in self._faulty_segments(others):
            sound = self.probe.segment(pages, length, (wrong,))
            for batch in ((sound, faulty), (faulty, sound)):
                ensure_raises(ValueError, partial(self.probe.runtime.forward, batch), f"a forward refuses {what}")
            found = self.probe.plainly(pages, length + 1, (following,))
            ensure_same_bits(found, expected[1:], f"a forward refused for {what} writes nothing")
        self.probe.give_back(pages, others)

    def run_everything(self) -> list[Rows]:
        """Prefill, tree and a mixed batch, for comparing two runtimes."""
        (pages, length), newcomer = self._prefix(), self.probe.take_pages(self.sizes.prefix)
        prompt = self.probe.segment(newcomer, 0, self.probe.tokens(self.sizes.prefix))
        rows = self.probe.forward(self._tree(pages, length), prompt)
        rows += self.probe.forward(self.probe.segment(pages, length, self.probe.tokens(1)))
        self.probe.give_back(pages, newcomer)
        return rows

    def _prefix(self) -> tuple[tuple[int, ...], int]:
        """Dirty pages with random committed tokens at their start, and how many."""
        pages = self.probe.take_pages(self.num_slots)
        self.probe.read_in(pages, self.probe.tokens(self.sizes.prefix))
        return pages, self.sizes.prefix

    def _tree(self, pages: tuple[int, ...], length: int) -> Segment:
        """A run of one to three tokens and a random tree behind it, with siblings more often than not."""
        num_run = self.random.randint(1, min(3, self.sizes.num_draft))
        parents = [self.random.randint(num_run - 1, row - 1) for row in range(num_run, self.sizes.num_draft)]
        return self.probe.segment(pages, length, self.probe.tokens(self.sizes.num_draft), parents)

    def _check_against_paths(self, segment: Segment, found: Rows, promise: str) -> None:
        """Overwrites the slots behind the segment's committed ones."""
        for row in range(len(segment.tokens)):
            path = [segment.tokens[ancestor] for ancestor in segment.path_to(row)]
            expected = self.probe.plainly(segment.pages, segment.length, path)
            ensure_same_bits(found[row : row + 1], expected[-1:], promise)

    def _hidden(self, segment: Segment) -> Rows:
        hidden = self.probe.runtime.forward([segment]).hidden
        if hidden is None:
            raise AssertionError("hidden states were asked for and not returned")
        return hidden.copy()

    def _faulty_segments(self, pages: tuple[int, ...]) -> list[tuple[str, Segment]]:
        info = self.probe.runtime.info
        sound = self.probe.segment(pages, 0, self.probe.tokens(3))
        short = pages[: (self.num_slots - 1) // info.page_size]
        tree = replace(sound, parents=(0, 1))
        faulty = [
            ("a token past the padded vocabulary", replace(sound, tokens=(0, info.padded_vocab_size, 0))),
            ("a negative token", replace(sound, tokens=(0, 0, -1))),
            ("a slot outside the pages", replace(sound, pages=short, length=len(short) * info.page_size - 1)),
            ("a page past the store", replace(sound, pages=(info.num_pages, *pages[1:]))),
            ("a negative page", replace(sound, pages=(-1, *pages[1:]))),
            ("a node that is its own parent", replace(tree, parents=(0, 2))),
            ("a node whose parent comes later", replace(tree, parents=(2, 0))),
            ("a negative parent", replace(tree, parents=(-1, 1))),
        ]
        num_rows = info.max_rows + 1
        if num_rows <= min(info.page_size * info.num_pages, info.max_length):
            every = replace(sound, pages=tuple(range(info.num_pages)), logits_rows=())
            faulty.append(("more rows than max_rows", replace(every, tokens=self.probe.tokens(num_rows))))
        return faulty
