"""Recorded answers: what replay scores proposers against, and the file that keeps them for the next time."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from paceline.bench.result_file import write_text
from paceline.checks import checked_ids, is_integer
from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Recording:
    """The answer to turn `turn` of item `item`, its last token included. `max_tokens`: the most that it could have had,
    by its request and by the capacity.

    Whatever ended the answer (a stop token, a stop string, a limit), it ended there. One that ended with an error or
    was aborted cannot be replayed: nobody knows what came next.
    """

    item: str
    turn: int
    task_class: str
    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    max_tokens: int

    def __post_init__(self) -> None:
        if not self.prompt_ids or not 1 <= len(self.answer_ids) <= self.max_tokens:
            raise ValueError(
                f"turn {self.turn} of {self.item!r} has {len(self.prompt_ids)} prompt tokens and "
                f"{len(self.answer_ids)} of an answer of at most {self.max_tokens}; expected at least 1 of each"
            )


@dataclass(frozen=True, slots=True)
class Recordings:
    """`fingerprint`: what the answers depend on (model, workload, sampling), plain JSON values. `max_draft_tokens`: the
    most draft tokens that a forward of the engine that gave them can check. `forward_ms`: T(n) of that engine by n,
    empty where it was not measured."""

    fingerprint: Mapping[str, Any]
    max_draft_tokens: int
    answers: tuple[Recording, ...]
    forward_ms: Mapping[int, float] = field(default_factory=dict)

    @property
    def task_classes(self) -> tuple[str, ...]:
        """In the order in which they first occur."""
        return tuple(dict.fromkeys(answer.task_class for answer in self.answers))


def most_tokens(params: SamplingParams, num_prompt: int, max_length: int) -> int:
    """What an answer behind `num_prompt` tokens may have, where prompt and answer may have `max_length` together."""
    capacity = max_length - num_prompt
    return capacity if params.max_tokens is None else min(params.max_tokens, capacity)


def save_recordings(path: Path, recordings: Recordings) -> None:
    content = {
        "format": FORMAT,
        "fingerprint": dict(recordings.fingerprint),
        "max_draft_tokens": recordings.max_draft_tokens,
        "forward_ms": {str(n): time for n, time in recordings.forward_ms.items()},
        "answers": [asdict(answer) for answer in recordings.answers],
    }
    write_text(json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n", path)


def load_recordings(path: Path) -> Recordings:
    """Raises UsageError for a file that cannot be read or holds no recordings."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the recordings {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path} is no JSON file; expected recordings that `paceline bench --record` wrote") from None
    return _recordings(path, content)


def _recordings(path: Path, content: object) -> Recordings:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UsageError(
            f"{path} holds no recordings of format {FORMAT}; expected a file that `paceline bench --record` wrote"
        )
    names = ("fingerprint", "max_draft_tokens", "answers", "forward_ms")
    fingerprint, most, answers, times = (content.get(name) for name in names)
    if not isinstance(fingerprint, dict) or not is_integer(most, 0) or not isinstance(answers, list):
        raise UsageError(f"{path} lacks its fingerprint, max_draft_tokens or answers; record anew")
    if not isinstance(times, dict) or not all(map(_is_time, times.items())):
        raise UsageError(f"{path} has no forward_ms, milliseconds above 0 by numbers of rows; record anew")
    forward_ms = {int(n): float(time) for n, time in times.items()}
    found = tuple([_recording(path, i, answer) for i, answer in enumerate(answers)])
    return Recordings(fingerprint, most, found, forward_ms)


def _is_time(entry: tuple[str, object]) -> bool:
    n, time = entry
    is_number = isinstance(time, int | float) and not isinstance(time, bool) and 0 < time < math.inf
    return is_number and n.isascii() and n.isdigit() and int(n) > 0


def _recording(path: Path, index: int, answer: object) -> Recording:
    try:
        if not isinstance(answer, dict):
            raise TypeError("it is no object")
        item, task_class, turn, most = (answer[name] for name in ("item", "task_class", "turn", "max_tokens"))
        if not (isinstance(item, str) and isinstance(task_class, str) and is_integer(turn, 0) and is_integer(most, 1)):
            raise TypeError("item, task_class, turn or max_tokens has another type")
        prompt, ids = (checked_ids(name, answer[name]) for name in ("prompt_ids", "answer_ids"))
        return Recording(item, turn, task_class, prompt, ids, most)
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise UsageError(f"answer {index} in {path} is malformed: {error}; record anew") from None
