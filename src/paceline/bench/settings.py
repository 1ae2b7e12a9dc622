"""What a benchmark is asked to do, from the words of a user; everything wrong with them is said before it begins."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.acceptance import MatchRule
from paceline.api.speculation import DEFAULT_NUM_SPECULATIVE_TOKENS, MAX_SPECULATIVE_TOKENS
from paceline.bench.base import ALL, Load, Mode, Workload
from paceline.checks import check_integer, check_number
from paceline.controller import OFF
from paceline.engine.options import MAX_NUM_SEQS
from paceline.errors import UsageError
from paceline.proposers import PROPOSERS
from paceline.sampling_params import SamplingParams

MIN_RATE, MAX_RATE = 1e-4, 10_000.0  # requests a second; a gap of hours is no load
MAX_BURSTINESS = 1000.0
MAX_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Settings:
    """`modes` and `loads` in the order in which they were named. `rounds`: how often the workload is gone through at
    each load, None for as long as `seconds` last; `seconds`: begin no further block of a load after so long. `seed`: of
    the order of modes, of arrivals and of noise. `num_prompts`: conversations of the workload to take, evenly over its
    classes; None for all. `follows_trace`: requests come when they came in the workload, at the one load that there is.
    """

    modes: tuple[Mode, ...]
    loads: tuple[Load, ...]
    params: SamplingParams
    rule: str = MatchRule.name
    num_prompts: int | None = None
    task_classes: tuple[str, ...] = ()
    rounds: int | None = 1
    seconds: float | None = None
    follows_trace: bool = False
    seed: int = 0
    prefix_caching: bool = False

    def __post_init__(self) -> None:
        check_integer("num_prompts", self.num_prompts, 1, or_none=True)
        check_integer("rounds", self.rounds, 1, MAX_ROUNDS, or_none=self.seconds is not None)
        check_integer("seed", self.seed, 0, 2**64 - 1)
        if self.seconds is not None:
            check_number("duration", self.seconds, 0.001, 1e7, "a number of seconds above 0")
        _check_once("mode", [mode.name for mode in self.modes])
        _check_once("load", [load.label for load in self.loads])

    @property
    def most_at_once(self) -> int:
        """The highest concurrency that is asked for; 0 where no loop is closed."""
        return max([load.concurrency or 0 for load in self.loads], default=0)


def parse_modes(text: str, ks: Sequence[int]) -> tuple[Mode, ...]:
    """ "off", a proposer, or PROPOSER:K, with commas between. A proposer without K runs at each of `ks`."""
    for k in ks:
        check_integer("num_speculative_tokens", k, 1, MAX_SPECULATIVE_TOKENS)
    modes = list[Mode]()
    for word in mode_words(text):
        name, colon, number = word.partition(":")
        if name == OFF and not colon:
            modes.append(Mode(OFF))
            continue
        if name not in PROPOSERS:
            raise UsageError(
                f"modes holds {word!r:.60}; choose from {', '.join([OFF, *PROPOSERS])}, each proposer with :K if wanted"
            )
        if colon:
            modes.append(Mode(word, name, parse_integer("modes", number, 1, MAX_SPECULATIVE_TOKENS)))
        else:
            modes += [Mode(name if len(ks) == 1 else f"{name}:{k}", name, k) for k in ks]
    return tuple(modes)


def mode_words(text: str) -> list[str]:
    """Each mode as it was named; what "all" stands for."""
    return [OFF, *PROPOSERS] if text.strip() == ALL else _words("modes", text)


def parse_ks(text: str | None) -> tuple[int, ...]:
    if text is None:
        return (DEFAULT_NUM_SPECULATIVE_TOKENS,)
    name = "num_speculative_tokens"
    return tuple(parse_integer(name, word, 1, MAX_SPECULATIVE_TOKENS) for word in _words(name, text))


def parse_loads(concurrency: str | None, request_rate: str | None, burstiness: float) -> tuple[Load, ...]:
    """Closed loops of each concurrency, then open ones of each rate; one at a time where neither is given."""
    check_number("burstiness", burstiness, 0.001, MAX_BURSTINESS, f"a number above 0, at most {MAX_BURSTINESS:g}")
    if concurrency is None and request_rate is None:
        concurrency = "1"
    loads = [
        Load(concurrency=parse_integer("concurrency", word, 1, MAX_NUM_SEQS))
        for word in (_words("concurrency", concurrency) if concurrency is not None else [])
    ]
    for word in _words("request_rate", request_rate) if request_rate is not None else []:
        loads.append(Load(request_rate=_rate(word), burstiness=burstiness))
    return tuple(loads)


def trace_load(workload: Workload) -> Load:
    """Of a recorded trace; its rate is the mean from the first arrival to the last. Raises UsageError for a workload
    that has no arrivals."""
    arrivals = [item.arrival for item in workload.items if item.arrival is not None]
    if len(arrivals) < len(workload.items):
        raise UsageError(f"the workload {workload.name!r} has no arrivals; give a concurrency or a request_rate")
    return Load(request_rate=len(arrivals) / max(arrivals[-1] - arrivals[0], 1e-3))


def parse_integer(name: str, word: str, lowest: int, highest: int) -> int:
    if not (word.isascii() and word.isdigit() and lowest <= int(word) <= highest):
        raise UsageError(f"{name} holds {word!r:.60}; expected integers from {lowest} to {highest}")
    return int(word)


def _rate(word: str) -> float:
    try:
        rate = float(word)
    except ValueError:
        rate = -1.0
    if not MIN_RATE <= rate <= MAX_RATE:
        raise UsageError(f"request_rate holds {word!r:.60}; expected requests a second, {MIN_RATE:g} to {MAX_RATE:g}")
    return rate


def _words(name: str, text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(f"{name} is {text!r:.60}; expected values with commas between")
    return words


def _check_once(what: str, names: Sequence[str]) -> None:
    if not names:
        raise UsageError(f"there is no {what}; name one at least")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"the {what} {name!r} is named twice; leave one out")
