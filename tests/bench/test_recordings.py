"""The file that keeps recorded answers: whole, or refused with a reason."""

import json
from pathlib import Path

import pytest

from paceline.bench.recordings import Recording, Recordings, load_recordings, most_tokens, save_recordings
from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams

FINGERPRINT = {"model": "0123", "params": {"temperature": 0.5}}
RECORDINGS = Recordings(
    FINGERPRINT,
    63,
    (Recording("a", 0, "copy", (1, 2), (3, 4, 5), 9), Recording("a", 1, "talk", (1,), (3,), 1)),
    {1: 5.0, 2: 5.25},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "recordings.json"
    save_recordings(path, RECORDINGS)
    return path


def test_what_is_saved_is_loaded(path: Path) -> None:
    assert load_recordings(path) == RECORDINGS
    assert RECORDINGS.task_classes == ("copy", "talk")


@pytest.mark.parametrize("times", [None, [], {"1": 0.0}, {"1": "5"}, {"0": 1.0}, {"x": 1.0}, {"1": True}])
def test_times_that_cannot_be(path: Path, times: object) -> None:
    content = json.loads(path.read_text())
    content["forward_ms"] = times
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match="has no forward_ms"):
        load_recordings(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("item", 1),
        ("task_class", None),
        ("turn", -1),
        ("turn", True),
        ("max_tokens", 2),  # fewer than the answer has
        ("max_tokens", "9"),
        ("prompt_ids", []),
        ("prompt_ids", [1, -2]),
        ("answer_ids", []),
        ("answer_ids", "12"),
        ("answer_ids", [1.5]),
    ],
)
def test_a_malformed_answer_is_named(path: Path, name: str, value: object) -> None:
    content = json.loads(path.read_text())
    content["answers"][0][name] = value
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"answer 0 in .* is malformed: "):
        load_recordings(path)


@pytest.mark.parametrize("name", ["item", "turn", "task_class", "prompt_ids", "answer_ids", "max_tokens"])
def test_a_missing_field_is_named(path: Path, name: str) -> None:
    content = json.loads(path.read_text())
    del content["answers"][1][name]
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=f"answer 1 in .* is malformed: '{name}'"):
        load_recordings(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no JSON file"),
        ("[]", "holds no recordings of format 1"),
        ('{"format": 2}', "holds no recordings of format 1"),
        ('{"format": 1}', "lacks its fingerprint"),
        ('{"format": 1, "fingerprint": {}, "max_draft_tokens": "x", "answers": []}', "lacks its fingerprint"),
        (
            '{"format": 1, "fingerprint": {}, "max_draft_tokens": 3, "answers": [7], "forward_ms": {}}',
            "answer 0 .* it is no object",
        ),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        load_recordings(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        load_recordings(tmp_path / "none.json")


def test_the_limit_of_an_answer_is_its_own_or_the_capacity() -> None:
    assert most_tokens(SamplingParams(10), 90, 200) == 10
    assert most_tokens(SamplingParams(10), 195, 200) == 5
    assert most_tokens(SamplingParams(None), 195, 200) == 5
