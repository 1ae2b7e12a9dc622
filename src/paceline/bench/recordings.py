"""Recorded answers: what replay scores proposers against, and the file that keeps them for the next time."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
    most draft tokens that a forward of the engine that gave them can check."""

    fingerprint: Mapping[str, Any]
    max_draft_tokens: int
    answers: tuple[Recording, ...]

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
        "answers": [asdict(answer) for answer in recordings.answers],
    }
    path.write_text(json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n", encoding="utf-8")


def load_recordings(path: Path, fingerprint: Mapping[str, Any]) -> Recordings:
    """Raises UsageError for a file that holds no recordings, or those of something else than `fingerprint` says."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the recordings {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path} is no JSON file; expected recordings that `--replay` wrote") from None
    recordings = _recordings(path, content)
    for name in sorted({*recordings.fingerprint, *fingerprint}):
        recorded, asked = recordings.fingerprint.get(name), fingerprint.get(name)
        if recorded != asked:
            raise UsageError(
                f"the recordings {path} were made with {name} {recorded!r:.100}, now it is {asked!r:.100}; "
                "record anew, or ask for the same"
            )
    return recordings


def _recordings(path: Path, content: object) -> Recordings:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UsageError(f"{path} holds no recordings of format {FORMAT}; expected a file that `--replay` wrote")
    fingerprint, most, answers = (content.get(name) for name in ("fingerprint", "max_draft_tokens", "answers"))
    if not isinstance(fingerprint, dict) or not is_integer(most, 0) or not isinstance(answers, list):
        raise UsageError(f"{path} lacks its fingerprint, max_draft_tokens or answers; record anew")
    return Recordings(fingerprint, most, tuple([_recording(path, i, answer) for i, answer in enumerate(answers)]))


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
