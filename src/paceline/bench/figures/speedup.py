"""Speedups, from pairs of blocks that were asked the same items close together in time."""

from collections.abc import Iterable, Sequence

from paceline.bench.result import BlockSums
from paceline.bench.statistics import Estimate, Sample, estimate_ratio, mean

Pairs = Sequence[tuple[BlockSums, BlockSums]]  # (of the mode, of "off")
RATIO = (1, -1, -1, 1)  # tokens and seconds of the mode, tokens and seconds of "off"


def pair_blocks(mode: Iterable[BlockSums], off: Iterable[BlockSums]) -> Pairs:
    """The blocks of one load that both have and in which no answer failed, in the order of the mode's."""
    plain = by_key(off)
    pairs = [(sums, plain[key]) for key, sums in by_key(mode).items() if key in plain]
    return [pair for pair in pairs if not any(sums.num_errors for sums in pair)]


def by_key(blocks: Iterable[BlockSums]) -> dict[tuple[str, int], BlockSums]:
    """Raises ValueError for two blocks of one class and index: they must be of one mode and load."""
    found: dict[tuple[str, int], BlockSums] = {}
    for sums in blocks:
        key = (sums.task_class, sums.index)
        if key in found:
            raise ValueError(f"block {sums.index} of {sums.task_class} under {sums.mode} is there twice")
        found[key] = sums
    return found


def speedup(pairs: Pairs) -> Estimate | None:
    """Of decoding: tokens behind each answer's first chunk, a second."""
    return estimate_ratio(decode_sample(pairs))


def decode_sample(pairs: Pairs) -> Sample:
    return Sample.of([decode_row(*pair) for pair in pairs], RATIO)


def decode_row(mode: BlockSums, off: BlockSums) -> tuple[float, float, float, float]:
    """The sums that `RATIO` makes a speedup of decoding of."""
    return mode.num_decoded, mode.decode_seconds, off.num_decoded, off.decode_seconds


def request_speedup(pairs: Pairs) -> Estimate | None:
    """Of whole answers: tokens a second from sending to the last token."""
    rows = [(m.num_tokens, m.request_seconds, off.num_tokens, off.request_seconds) for m, off in pairs]
    return estimate_ratio(Sample.of(rows, RATIO))


def macro_speedup(pairs: Pairs) -> float | None:
    """The mean of the blocks' own speedups of decoding: a long answer counts no more than a short one."""
    rows = decode_sample(pairs).sums
    return mean([float((row[0] / row[1]) / (row[2] / row[3])) for row in rows])


def without_loops(pairs: Pairs) -> Pairs:
    return [pair for pair in pairs if not any(sums.has_loop for sums in pair)]
