"""Files of workloads: what each format means, and what is said of files and lines that mean nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.bench.base import Item, Message, Problem, Workload
from paceline.bench.workloads import load_workload, select
from paceline.errors import UsageError

QUESTIONS = Path(__file__).parent.parent / "data" / "spec_bench_subset.jsonl"
GOOD = '{"prompt": "Hi."}'
SOUND = [
    b'{"prompt": "a", "task_class": "b", "max_tokens": 3}\n{"messages": [{"role": "user", "content": "c"}]}\n',
    b'{"arrival": 0, "prompt": "a"}\r\n{"arrival": 1.5, "prompt": "b"}\r\n{"arrival": 2, "prompt": "c"}',
    b'{"question_id": 1, "category": "a", "turns": ["b", "c"]}\n{"question_id": 2, "category": "a", "turns": ["d"]}\n',
    b'[{"id": "a", "conversations": [{"from": "human", "value": "b"}]},\n{"conversations": []}, {"id": 3}\n]',
]
SHARDS = [
    b"",
    b"\n",
    b'"',
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b"\xff",
    b"\0",
    b"null",
    b"-1",
    b"1e999",
    b"NaN",
    b'"\\ud800"',
    b"\xef\xbb\xbf",
]


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "work.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def loaded(folder: Path, *records: Any) -> Workload:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    return load_workload(written(folder, "\n".join(lines)), on_problem="skip")


def problem(folder: Path, record: Any, good: Any) -> str:
    """What is said of a record in a file with a good one."""
    workload = loaded(folder, good, record)
    assert len(workload.items) == 1
    [found] = workload.problems
    assert found.line == 2
    return found.message


def refused(path: Path | str, **options: Any) -> str:
    with pytest.raises(UsageError) as error:
        load_workload(path, **({"on_problem": "skip"} | options))
    return str(error.value)


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


def test_an_array_tells_line_and_element(tmp_path: Path) -> None:
    good = '{"id": "%s", "conversations": [{"from": "human", "value": "Hi."}]}'
    path = written(tmp_path, f"[{good % 'a'}, 7,\n\n {good % 'a'},\n{good % 'b'} ]\n")
    workload = load_workload(path, on_problem="skip")
    assert [item.id for item in workload.items] == ["a", "b"]
    assert workload.problems == (
        Problem(1, "element 2 of the array: found 7; expected a JSON object"),
        Problem(3, "element 3 of the array: the id 'a' is that of element 1; expected one of its own"),
    )


@pytest.mark.parametrize(
    ("ending", "line", "message"),
    [
        (',\n{"prompt": ', 2, "no JSON in element 2 of the array: Expecting value; nothing behind is read"),
        (",\n]", 2, "no JSON in element 2 of the array: Expecting value; nothing behind is read"),
        ("\n", 2, "the array breaks off: found '', expected ',' or ']'"),
        (' {"prompt": "b"}]', 1, "the array breaks off: found '{', expected ',' or ']'"),
        ("]\n\nmore", 3, "found 'm' behind the end of the array; nothing behind it is read"),
        (f",{'[' * 200_000}]", 1, "no JSON that can be read in element 2 of the array: maximum recursion depth"),
    ],
)
def test_an_array_that_breaks(tmp_path: Path, ending: str, line: int, message: str) -> None:
    workload = load_workload(written(tmp_path, f"[{GOOD}{ending}"), on_problem="skip")
    assert [item.id for item in workload.items] == ["element-1"]
    [found] = workload.problems
    assert found.line == line
    assert found.message.startswith(message)


def test_bytes_that_are_no_utf8_in_an_array(tmp_path: Path) -> None:
    workload = load_workload(written(tmp_path, b'[{"prompt": "caf\xe9"}, {"prompt": "Hi."}]'), on_problem="skip")
    assert [item.turns for item in workload.items] == [("Hi.",)]
    assert workload.problems[0].message.startswith("element 1 of the array: prompt is no valid Unicode")


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


def test_marks_line_ends_and_blank_lines(tmp_path: Path) -> None:
    content = f"\ufeff\r\n{GOOD}\r\n\r\n  \r\nnonsense\r\n".encode() + b'{"prompt": "\xff"}\n' + GOOD.encode()
    workload = load_workload(written(tmp_path, content), on_problem="skip")
    assert [item.id for item in workload.items] == ["line-2", "line-7"]
    assert workload.problems == (
        Problem(5, "no JSON: Expecting value, at character 1 of the line"),
        Problem(6, "no valid UTF-8: byte 13 of the line is 0xff"),
    )


def test_a_line_without_end(tmp_path: Path) -> None:
    endless = '{"prompt": "' + "a" * (16 << 20) + '"}'
    workload = loaded(tmp_path, endless, GOOD, endless)
    assert [item.id for item in workload.items] == ["line-2"]
    assert workload.problems == tuple(Problem(line, "longer than the 16 MiB that a line may have") for line in (1, 3))


def test_an_element_without_end(tmp_path: Path) -> None:
    workload = loaded(tmp_path, '[{"prompt": "' + "a" * (16 << 20) + '"}', f", {GOOD}]")
    assert [item.id for item in workload.items] == ["element-2"]
    assert workload.problems == (Problem(1, "element 1 of the array is longer than 16 Mi characters"),)


@given(st.data())
def test_no_damage_is_more_than_a_usage_error(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Nothing but UsageError is raised, and every other outcome has an item."""
    content = bytearray(data.draw(st.sampled_from(SOUND)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content)))
        content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.sampled_from(SHARDS))
    path = written(tmp_path_factory.getbasetemp(), bytes(content))
    try:
        workload = load_workload(path, on_problem="skip")
    except UsageError:
        return
    assert workload.items
    num_lines = content.count(b"\n") + 1
    assert all(1 <= problem.line <= num_lines for problem in workload.problems)


def test_refusing(tmp_path: Path) -> None:
    path = written(tmp_path, "\n".join([GOOD, *['{"prompt": 1}'] * 7]))
    message = refused(path, on_problem="refuse")
    assert message.startswith(f"the workload '{path}', read as plain, has 7 bad records: line 2: prompt is 1; ")
    assert "line 6: " in message
    assert message.endswith("; and 2 more; correct them, or have them skipped")


def test_a_file_with_no_item_at_all_is_always_refused(tmp_path: Path) -> None:
    message = refused(written(tmp_path, '{"prompt": 1}'))
    assert message.endswith("has 1 bad records: line 1: prompt is 1; expected a text; it holds nothing else")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; expected spec-bench, "),
        (b"\xef\xbb\xbf \r\n\n", "is empty; expected spec-bench, "),
        (b" [ ] ", "is empty; expected spec-bench, "),
        (b"Name three rivers.\n", "is of no known format: line 1 is no JSON: Expecting value, at character 1"),
        (b'{"question": "a"}\n', "is of no known format: the record at line 1 has the keys 'question'; expected spec-"),
        (b'["a"]', "is of no known format: line 1 holds 'a'; expected spec-bench, "),
        (GOOD.encode("utf-16"), "is no UTF-8 text; expected jsonl or JSON"),
        (b"\x1f\x8b\x08\x00\x00", "is no UTF-8 text; expected jsonl or JSON"),
    ],
)
def test_files_of_no_format(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in refused(written(tmp_path, content))


def test_most_records_tell_the_format(tmp_path: Path) -> None:
    trace = {"arrival": 1, "prompt": "a"}
    workload = loaded(tmp_path, {"prompt": "forgotten"}, "nonsense", trace, trace)
    assert len(workload.items) == 2
    assert workload.problems[0] == Problem(1, "arrival is missing; the keys are 'prompt'; expected it in every record")


def test_an_arrival_in_a_file_that_is_no_trace(tmp_path: Path) -> None:
    workload = loaded(tmp_path, GOOD, GOOD, {"prompt": "a", "arrival": 0})
    message = "arrival belongs to a recorded trace, where every record has one; this file is none"
    assert workload.problems == (Problem(3, message),)


def test_the_format_can_be_said(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    assert len(load_workload(path, on_problem="refuse", format_name="plain").items) == 1
    assert "line 1: arrival is missing" in refused(path, format_name="trace")
    assert refused(path, format_name="plane") == "unknown workload format 'plane'; did you mean 'plain'?"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert (
        refused(tmp_path / "none")
        == f"the workload '{tmp_path}/none' cannot be read: No such file or directory; give a file"
    )
    assert "Is a directory" in refused(tmp_path)


def test_what_to_do_with_problems_is_said() -> None:
    assert refused("builtin", on_problem="ignore") == "on_problem is 'ignore'; expected 'skip' or 'refuse'"


WORKLOAD = Workload(
    "w", tuple(Item(f"{name}{i}", name, ("Hi.",)) for name, n in [("a", 1), ("b", 5), ("c", 4)] for i in range(n))
)


@pytest.mark.parametrize(
    ("num_prompts", "task_classes", "chosen"),
    [
        (None, None, "a0 b0 b1 b2 b3 b4 c0 c1 c2 c3"),
        (None, ("c", "a"), "a0 c0 c1 c2 c3"),
        (2, None, "a0 b0"),
        (6, None, "a0 b0 b1 b2 c0 c1"),
        (3, ("c", "b", "c"), "b0 c0 c1"),
        (99, ("a",), "a0"),
    ],
)
def test_selection_is_even(num_prompts: int | None, task_classes: tuple[str, ...] | None, chosen: str) -> None:
    assert " ".join(item.id for item in select(WORKLOAD, num_prompts, task_classes).items) == chosen


@pytest.mark.parametrize(
    ("num_prompts", "task_classes", "message"),
    [
        (0, None, "num_prompts is 0; expected None or an integer of at least 1"),
        (None, (), "there are no task classes to measure; choose from a, b, c"),
        (None, ("d",), "the workload 'w' has no task class 'd'; choose from a, b, c"),
        (None, ("bb",), "the workload 'w' has no task class 'bb'; did you mean 'b'?"),
    ],
)
def test_selections_that_there_are_not(
    num_prompts: int | None, task_classes: tuple[str, ...] | None, message: str
) -> None:
    with pytest.raises(UsageError) as error:
        select(WORKLOAD, num_prompts, task_classes)
    assert str(error.value) == message
