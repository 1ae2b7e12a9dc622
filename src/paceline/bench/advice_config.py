"""The advice as a configuration: TOML, with `[speculation]` as `LLM(speculation=...)` takes it."""

import json
from collections.abc import Sequence
from typing import Any

from paceline.acceptance import MatchRule
from paceline.api.speculation import Speculation
from paceline.bench.advice import when_to_measure_again
from paceline.bench.base import ALL, Mode
from paceline.bench.plain_values import flat
from paceline.bench.result import Advice, Result
from paceline.controller import OFF
from paceline.errors import UsageError


def speculation_of(mode: Mode, rule: str = MatchRule.name) -> dict[str, Any]:
    """The fields of `Speculation` that make this mode. Raises UsageError for one that this engine cannot be given, as
    that of a server."""
    fields: dict[str, Any] = {"proposer": mode.proposer}
    if not mode.is_off:
        fields["num_speculative_tokens"] = mode.num_speculative_tokens
    fields["rule"] = rule
    Speculation.of(fields)
    return fields


def config_toml(result: Result, modes: Sequence[Mode], rule: str = MatchRule.name) -> str:
    """What to use for all classes together, and in comments what for each, why, what was measured and when to measure
    again. Raises UsageError where the advised mode cannot be configured, or nothing was advised."""
    overall = next((advice for advice in result.advice if advice.task_class == ALL), None)
    if overall is None:
        raise UsageError("the result holds no advice, because no block was measured to its end; measure again")
    fields = speculation_of(next(mode for mode in modes if mode.name == overall.mode), rule)
    comments = [
        "Speculation as `paceline bench` advises it.",
        "",
        *(_line(advice) for advice in result.advice),
        "",
        *when_to_measure_again(result.runs),
        "",
        "Measured under:",
        *(f"  {name} = {json.dumps(value, ensure_ascii=False)}" for name, value in flat(result.fingerprint)),
    ]
    lines = [
        *map(_comment, comments),
        "",
        "[speculation]",
        *(f"{name} = {json.dumps(fields[name])}" for name in fields),
    ]
    return "\n".join(lines) + "\n"


def _line(advice: Advice) -> str:
    name = "all classes together" if advice.task_class == ALL else advice.task_class
    mode = advice.mode if advice.mode == OFF else f"{advice.mode}, {advice.num_speculative_tokens} draft tokens"
    limit = "" if advice.limit is None else f", up to {advice.limit}"
    return f"{name}: {mode}{limit}; {advice.reason}"


def _comment(text: str) -> str:
    """One line, whatever a name of a class holds."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return f"# {shown}".rstrip()
