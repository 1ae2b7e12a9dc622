"""What of a block its speedups are made from."""

from collections.abc import Iterable, Sequence

from paceline.bench.base import Answer, Block
from paceline.bench.loops import ends_in_loop
from paceline.bench.result import BlockSums


def good_answers(blocks: Iterable[Block]) -> list[Answer]:
    """All answers that did not fail."""
    return [seen.answer for block in blocks for seen in block.observations if seen.answer.error is None]


def timed(answers: Iterable[Answer]) -> list[Answer]:
    """Those that have times: an answer of no token has no chunk."""
    return [answer for answer in answers if answer.chunks]


def block_sums(block: Block) -> BlockSums:
    answers = good_answers([block])
    seen = timed(answers)
    return BlockSums(
        index=block.index,
        task_class=block.task_class,
        mode=block.mode,
        concurrency=block.load.concurrency,
        request_rate=block.load.request_rate,
        seconds=block.seconds,
        num_tokens=sum(answer.num_tokens for answer in answers),
        num_decoded=sum(answer.num_decoded for answer in seen),
        decode_seconds=sum(answer.decode_seconds for answer in seen),
        request_seconds=sum(answer.e2e for answer in seen),
        num_errors=len(block.observations) - len(answers),
        has_loop=any(ends_in_loop(answer) for answer in answers),
    )


def num_errors(blocks: Sequence[Block]) -> int:
    return sum(seen.answer.error is not None for block in blocks for seen in block.observations)
