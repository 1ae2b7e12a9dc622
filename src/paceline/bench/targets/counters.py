"""Speculation counters from a server's `/metrics`, in vLLM's, llama.cpp's or this project's own names.

SGLang has none: its `sglang:spec_accept_length` and `sglang:spec_accept_rate` are gauges, the latest values of one
replica, which say nothing of a stretch of time. What it tells with each answer is read by `answer_counts`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from paceline.bench.base import Counts
from paceline.bench.targets.json_fields import MAX_COUNT, EndpointError, checked_index

SPECULATION = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
PER_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    prefix: str
    generation: str
    """The counter of generated tokens, without the prefix."""


DIALECTS = (
    Dialect("paceline", "paceline_", "generation_tokens_total"),
    Dialect("vllm", "vllm:", "generation_tokens_total"),
    Dialect("llamacpp", "llamacpp:", "tokens_predicted_total"),
)
"""The first one that a server speaks is used: ours can speak vLLM's too."""

STARTED = "process_start_time_seconds"

Labels = frozenset[tuple[str, str]]
Series = tuple[str, Labels]

_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?[\d.]+)?(?:[ \t]+#.*)?")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")


class CounterResetError(EndpointError):
    """Counters went back between two readings."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A server's counters at one moment: one value for each name (without the prefix) and set of labels."""

    dialect: str
    values: Mapping[Series, float]


def read_counters(text: str) -> Reading | None:
    """The counters in `text`, Prometheus' text format; None where it holds none of a known server.

    Raises EndpointError for a line of theirs that cannot be read. Lines of others are not looked at.
    """
    for dialect in DIALECTS:
        wanted = {dialect.prefix + name: name for name in _names(dialect)}
        values = _values(text, {**wanted, STARTED: STARTED})
        if any(name != STARTED for name, _ in values):
            return Reading(dialect.name, values)
    return None


def has_only_gauges(text: str) -> bool:
    """Whether the server is SGLang, whose figures of speculation cannot be attributed to a stretch of time."""
    return "\nsglang:spec_accept_" in f"\n{text}"


def counts_between(before: Reading, after: Reading, num_answers: int, num_tokens: int) -> Counts:
    """What happened between two readings, summed over labels, so over models and replicas too. `num_answers` and
    `num_tokens`: those of this session; the tokens stand in where the server counts none.

    Of everybody's requests: a server under test must serve nobody else. Raises CounterResetError if the server was
    restarted, or one of its replicas went away.
    """
    grown = _growth(before, after)
    dialect = next(dialect for dialect in DIALECTS if dialect.name == after.dialect)
    generated = _total(grown, dialect.generation, num_tokens)
    drafts, draft_tokens, accepted = (_total(grown, f"spec_decode_{name}_total", 0) for name in SPECULATION)
    return derived_counts(max(generated - num_answers, 0), drafts, draft_tokens, accepted, _per_position(grown))


def derived_counts(
    num_emitted: int,
    num_drafts: int,
    num_draft_tokens: int,
    num_accepted_tokens: int,
    per_position: tuple[int, ...] = (),
    drafted: Mapping[int, int] | None = None,
) -> Counts:
    """Counts of a server that tells no number of target steps. `num_emitted`: without each answer's first token, which
    prefill yields. A step emits what it accepts and one token of the target's own, so steps = emitted - accepted.

    Servers count an accepted token that a stop or the limit then trimmed, unlike `SpeculationStats`: the steps come
    out too few by at most that many, less than one draft for each answer, and never fewer than those that had a draft.
    Raises EndpointError where more stood than was drafted.
    """
    if num_accepted_tokens > num_draft_tokens:
        raise EndpointError(f"the server tells that {num_accepted_tokens} of {num_draft_tokens} draft tokens stood")
    steps = max(num_emitted - num_accepted_tokens, num_drafts)
    return Counts(
        num_target_steps=steps,
        num_emitted=num_emitted,
        num_drafts=num_drafts,
        num_draft_tokens=num_draft_tokens,
        num_accepted_tokens=num_accepted_tokens,
        per_position=per_position,
        drafted={0: steps - num_drafts, **drafted} if drafted else {},
    )


def _names(dialect: Dialect) -> tuple[str, ...]:
    return (dialect.generation, *(f"spec_decode_{name}_total" for name in SPECULATION), PER_POSITION)


def _values(text: str, wanted: Mapping[str, str]) -> dict[Series, float]:
    values = dict[Series, float]()
    for line in text.splitlines():
        if re.split(r"[{ \t]", line, maxsplit=1)[0] not in wanted:
            continue
        name, labels, value = _parsed(line)
        series = (wanted[name], labels)
        if series in values:
            raise EndpointError(f"/metrics holds {line[:200]!r} twice")
        values[series] = value
    return values


def _parsed(line: str) -> tuple[str, Labels, float]:
    match = _LINE.fullmatch(line.rstrip())
    try:
        if match is None:
            raise ValueError(line)
        labels, value = _labels(match[2] or ""), float(match[3])
        if not (isfinite(value) and abs(value) <= MAX_COUNT):
            raise ValueError(line)
    except ValueError:
        raise EndpointError(f"/metrics holds {line[:200]!r}; expected a name, labels and a number") from None
    return match[1], labels, value


def _labels(text: str) -> Labels:
    labels, position = set[tuple[str, str]](), 0
    while position < len(text):
        match = _LABEL.match(text, position)
        if match is None:
            raise ValueError(text)
        labels.add((match[1], _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], match[2])))
        position = match.end()
    return frozenset(labels)


def _growth(before: Reading, after: Reading) -> dict[Series, float]:
    """A series that is new began at 0: servers show one when it first counts."""
    for series, value in before.values.items():
        now = after.values.get(series)
        if now is None or now < value or (series[0] == STARTED and now != value):
            raise CounterResetError(f"the counter {series[0]} went from {value:g} to {now}: the server was restarted")
    return {series: value - before.values.get(series, 0.0) for series, value in after.values.items()}


def _total(grown: Mapping[Series, float], name: str, absent: int) -> int:
    values = [value for (each, _), value in grown.items() if each == name]
    return round(sum(values)) if values else absent


def _per_position(grown: Mapping[Series, float]) -> tuple[int, ...]:
    """By position from 0; one that a server does not show was never reached."""
    counts = dict[int, float]()
    for (name, labels), value in grown.items():
        if name == PER_POSITION:
            position = checked_index(PER_POSITION, dict(labels).get("position", ""))
            counts[position] = counts.get(position, 0.0) + value
    found = [round(counts.get(position, 0.0)) for position in range(max(counts, default=-1) + 1)]
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)
