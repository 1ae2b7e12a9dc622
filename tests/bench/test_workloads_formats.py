"""What a record means in each format, and what is said of one that means nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from workload_files import GOOD, loaded, problem, written

from paceline.bench.base import Item, Message, Problem
from paceline.bench.workloads import load_workload

QUESTIONS = Path(__file__).parent.parent / "data" / "spec_bench_subset.jsonl"


def test_spec_bench() -> None:
    workload = load_workload(QUESTIONS, on_problem="refuse")
    assert workload.name == "spec_bench_subset.jsonl"
    assert len(workload.items) == 48
    assert workload.task_classes[0] == "writing"
    assert workload.items[0].id == "81"
    assert len(workload.items[0].turns) == 2
    assert all(item.max_tokens is None and item.arrival is None and not item.history for item in workload.items)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"turns": None}, "turns is null; expected it in every record"),
        ({"turns": []}, "turns is []; expected a list of texts, at least one"),
        ({"turns": "Hi."}, "turns is 'Hi.'; expected a list of texts, at least one"),
        ({"turns": ["a", " "]}, "turns[1] is empty; expected a text"),
        ({"question_id": True}, "question_id is True; expected a text"),
        ({"question_id": 1}, "the id '1' is that of line 1; expected one of its own"),
        ({"category": 3}, "category is 3; expected a text"),
    ],
)
def test_bad_spec_bench_records(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    good = {"question_id": 1, "category": "math", "turns": ["a"], "reference": ["ignored"]}
    assert problem(tmp_path, good | {"question_id": 2} | change, good) == message


def test_sharegpt(tmp_path: Path) -> None:
    conversations = [
        {"from": "system", "value": "Be short."},
        {"from": "human", "value": "One?"},
        {"from": "gpt", "value": "1"},
        {"from": "user", "value": "Two?"},
        {"from": "gpt", "value": ""},
    ]
    path = written(tmp_path, json.dumps([{"id": "a", "conversations": conversations}], indent=2))
    assert load_workload(path, on_problem="refuse").items == (
        Item("a", "chat", ("One?", "Two?"), (Message("system", "Be short."),)),
    )


def test_a_cut_conversation_begins_with_an_answer(tmp_path: Path) -> None:
    entries = [{"from": "gpt", "value": "As I said."}, {"from": "human", "value": "Go on."}]
    [item] = loaded(tmp_path, {"conversations": entries}).items
    assert (item.id, item.history, item.turns) == ("line-1", (Message("assistant", "As I said."),), ("Go on.",))


@pytest.mark.parametrize(
    ("conversations", "message"),
    [
        ([], "conversations is []; expected a list of entries, at least one"),
        (["Hi."], """conversations[0] is 'Hi.'; expected {"from": ..., "value": ...}"""),
        ([{"from": "gpt", "value": "Hi."}], "conversations holds nothing from human or user, and so nothing to ask"),
        ([{"from": ["human"], "value": "Hi."}], "conversations[0].from is ['human']; expected one of system, human"),
        ([{"from": "human"}], "conversations[0].value is None; expected a text"),
        ([{"from": "human", "value": ""}], "conversations[0].value is empty; expected a text"),
        (
            [{"from": "human", "value": "Hi."}, {"from": "system", "value": "Be short."}],
            "conversations[1] is from system, behind a human; expected it before the first",
        ),
    ],
)
def test_bad_sharegpt_records(tmp_path: Path, conversations: Any, message: str) -> None:
    good = {"conversations": [{"from": "human", "value": "Hi."}]}
    assert problem(tmp_path, {"conversations": conversations}, good).startswith(message)


def test_plain(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "Two?"},
        {"role": "assistant", "content": "not used"},
    ]
    edit = {
        "prompt": "Edit.",
        "id": 7,
        "task_class": "edit",
        "prediction": "x = 1\n",
        "max_tokens": 9,
        "source": "ignored",
    }
    workload = loaded(tmp_path, {"messages": messages, "prediction": None}, edit)
    assert workload.problems == ()
    assert workload.items == (
        Item("line-1", "default", ("Two?",), (Message("user", "One?"), Message("assistant", "1"))),
        Item("7", "edit", ("Edit.",), prediction="x = 1\n", max_tokens=9),
    )


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"prompt": ""}, "prompt is empty; expected a text"),
        ({"prompt": 5}, "prompt is 5; expected a text"),
        (
            {"prompt": "\ud800"},
            "prompt is no valid Unicode: it holds bytes that are no UTF-8, or half a surrogate pair",
        ),
        ({}, "expected exactly one of prompt and messages; the record has neither; its keys are none"),
        ({"prompt": "a", "messages": []}, "expected exactly one of prompt and messages; the record has both"),
        ({"messages": []}, "messages is []; expected a list of messages, at least one"),
        ({"messages": ["Hi."]}, """messages[0] is 'Hi.'; expected {"role": ..., "content": ...}"""),
        ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].role is 'tool'; expected one of system, user"),
        ({"messages": [{"role": "user", "content": ["a"]}]}, "messages[0].content is ['a']; expected a text"),
        ({"messages": [{"role": "system", "content": "a"}]}, "messages holds none of the role user"),
        ({"prompt": "a", "max_tokens": 0}, "max_tokens is 0; expected an integer of at least 1"),
        ({"prompt": "a", "max_tokens": True}, "max_tokens is True; expected an integer of at least 1"),
        ({"prompt": "a", "prediction": ""}, "prediction is empty; expected a text"),
        ({"prompt": "a", "max_token": 4}, "the key 'max_token' is unknown; did you mean 'max_tokens'?"),
        ({"prompt": "a", "task_class": "all"}, "the task class 'all' stands for all of them; expected another name"),
        ({"prompt": "a", "task_class": "*"}, "the task class '*' stands for all of them; expected another name"),
        ({"prompt": "a", "Task-Class": "b"}, "the key 'Task-Class' is unknown; did you mean 'task_class'?"),
        ({"prompt": "a", "id": "line-1"}, "the id 'line-1' is that of line 1; expected one of its own"),
        ("[1]", "found [1]; expected a JSON object"),
        ("{'prompt': 'a'}", "no JSON: Expecting property name enclosed in double quotes, at character 2 of the line"),
        ({"prompt": ["x" * 99] * 9}, "prompt is ['xxx"),
        ('{"prompt": ' + "[" * 900 + "]" * 900 + "}", "prompt is [[[[[[[...]]]]]]]; expected a text"),
        ("9" * 5000, "no JSON that can be read: Exceeds the limit"),
        ("[" * 200_000, "no JSON that can be read: maximum recursion depth"),
    ],
)
def test_bad_plain_records(tmp_path: Path, record: Any, message: str) -> None:
    assert problem(tmp_path, record, GOOD).startswith(message)


def test_a_trace(tmp_path: Path) -> None:
    first = {"arrival": 0.5, "prompt": "One?"}
    workload = loaded(tmp_path, first, first, {"arrival": 2, "messages": [{"role": "user", "content": "Two?"}]})
    assert workload.problems == ()
    assert [item.arrival for item in workload.items] == [0.5, 0.5, 2.0]
    assert [item.id for item in workload.items] == ["line-1", "line-2", "line-3"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"prompt": "a"}, "arrival is missing; the keys are 'prompt'; expected it in every record"),
        ('{"prompt": "a", "arrival": NaN}', "arrival is nan; expected seconds since the beginning, from 0 to 1e+09"),
        ('{"prompt": "a", "arrival": 1e400}', "arrival is inf; expected seconds since the beginning, from 0 to 1e+09"),
        ({"prompt": "a", "arrival": "1"}, "arrival is '1'; expected seconds since the beginning, from 0 to 1e+09"),
        (
            {"prompt": "a", "arrival": 1733000000},
            "arrival is 1733000000; expected seconds since the beginning, from 0 to 1e+09",
        ),
        ({"prompt": "a", "arrival": 1}, "arrival is 1, before the 2 of the request above it"),
    ],
)
def test_bad_records_of_a_trace(tmp_path: Path, record: Any, message: str) -> None:
    assert problem(tmp_path, record, {"prompt": "a", "arrival": 2}) == message


def test_a_bad_record_does_not_move_the_clock(tmp_path: Path) -> None:
    workload = loaded(
        tmp_path, {"arrival": 1, "prompt": "a"}, {"arrival": 9, "prompt": ""}, {"arrival": 2, "prompt": "b"}
    )
    assert [item.arrival for item in workload.items] == [1.0, 2.0]


def test_an_arrival_in_a_file_that_is_no_trace(tmp_path: Path) -> None:
    workload = loaded(tmp_path, GOOD, GOOD, {"prompt": "a", "arrival": 0})
    message = "arrival belongs to a recorded trace, where every record has one; this file is none"
    assert workload.problems == (Problem(3, message),)
