"""The embedded suite: what is in it, and that it is what it claims to be."""

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from paceline.bench.base import Item, Workload
from paceline.bench.workloads import load_workload
from paceline.errors import UsageError
from paceline.models import encode_chat, open_model

CLASSES = [
    "code_editing",
    "code_writing",
    "structured_configuration",
    "summarising",
    "question_answering",
    "translation",
    "reasoning",
    "writing",
    "long_context",
]


@pytest.fixture(scope="module")
def suite() -> Workload:
    return load_workload("builtin", on_problem="refuse")


def items_of(suite: Workload, task_class: str) -> list[Item]:
    return [item for item in suite.items if item.task_class == task_class]


def test_classes_and_counts(suite: Workload) -> None:
    assert suite.name == "builtin"
    assert suite.problems == ()
    assert list(suite.task_classes) == CLASSES
    counts = Counter(item.task_class for item in suite.items)
    assert counts.pop("code_editing") >= 20
    assert set(counts.values()) == {8}


def test_nothing_is_there_twice(suite: Workload) -> None:
    assert len({item.id for item in suite.items}) == len(suite.items)
    turns = [turn for item in suite.items for turn in item.turns]
    assert len(set(turns)) == len(turns)


def test_every_answer_has_a_limit_and_a_question(suite: Workload) -> None:
    assert all(item.max_tokens is not None and 128 <= item.max_tokens <= 256 for item in suite.items)
    assert all(turn == turn.strip() and turn for turn in chain.from_iterable(item.turns for item in suite.items))


def test_edits_predict_the_code_that_they_show(suite: Workload) -> None:
    edits = items_of(suite, "code_editing")
    for item in edits:
        assert item.prediction is not None
        assert 30 <= len(item.prediction.splitlines()) <= 82
        assert item.prediction.endswith("\n")
        assert f"\n{item.prediction}```" in item.turns[0]
    assert len({item.turns[0].split("```")[1].splitlines()[0] for item in edits}) >= 8  # languages
    assert all(item.prediction is None for item in suite.items if item.task_class != "code_editing")


def test_passages_to_summarise_are_passages(suite: Workload) -> None:
    assert all(250 <= len(item.turns[0].split()) <= 500 for item in items_of(suite, "summarising"))


def test_several_classes_have_second_turns(suite: Workload) -> None:
    assert len({item.task_class for item in suite.items if len(item.turns) == 2}) >= 5


def test_long_contexts_leave_room_for_their_answers(suite: Workload, smollm2_path: Path) -> None:
    with open_model(smollm2_path) as model:
        tokenizer, template = model.tokenizer(), model.chat_template()
        assert template is not None
        for item in items_of(suite, "long_context"):
            assert 6_000 <= len(tokenizer.encode(item.turns[0])) <= 7_600
            assert item.max_tokens is not None
            messages = [{"role": "user", "content": turn} for turn in item.turns]
            for i in range(1, len(item.turns)):
                messages.insert(2 * i - 1, {"role": "assistant", "content": "-"})
            most = len(encode_chat(tokenizer, template, messages)) + item.max_tokens * len(item.turns)
            assert most <= 8_192


def test_the_embedded_suite_has_no_format() -> None:
    with pytest.raises(UsageError, match="the embedded suite has no format; leave out 'plain', or give a file"):
        load_workload("builtin", on_problem="skip", format_name="plain")


def test_a_file_of_that_name_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "builtin").write_text('{"prompt": "Hi."}')
    assert len(load_workload(Path("builtin"), on_problem="refuse").items) == 1
    assert len(load_workload("./builtin", on_problem="refuse").items) == 1
