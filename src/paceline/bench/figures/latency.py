"""Times of answers, and how many answers met their targets."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from paceline.bench.base import Answer
from paceline.bench.result import Spread
from paceline.bench.statistics import spread

SLO_NAMES = ("ttft", "tpot", "e2e")  # milliseconds
_MS = 1e3


def tpot(answer: Answer) -> float | None:
    """Seconds per token behind the first chunk; None where there is none."""
    if not answer.chunks or answer.num_decoded <= 0:
        return None
    return answer.decode_seconds / answer.num_decoded


def ttft_ms(answers: Iterable[Answer]) -> Spread:
    return spread([answer.ttft * _MS for answer in answers])


def tpot_ms(answers: Iterable[Answer]) -> Spread:
    return spread([seconds * _MS for answer in answers if (seconds := tpot(answer)) is not None])


def chunk_gap_ms(answers: Iterable[Answer]) -> Spread:
    return spread([(b.time - a.time) * _MS for answer in answers for a, b in pairwise(answer.chunks)])


def e2e_ms(answers: Iterable[Answer]) -> Spread:
    return spread([answer.e2e * _MS for answer in answers])


def meets_targets(answer: Answer, slo: Mapping[str, float]) -> bool:
    """Whether every time that `slo` names, of `SLO_NAMES` in milliseconds, is at most what it says. An answer of no
    token meets none; one of a single chunk has no TPOT, and meets any target for it."""
    if not answer.chunks:
        return False
    times = {"ttft": answer.ttft, "tpot": tpot(answer), "e2e": answer.e2e}
    return all((seconds := times[name]) is None or seconds * _MS <= most for name, most in slo.items())
