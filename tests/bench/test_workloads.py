"""Files of workloads: their format, and lines, elements and bytes that mean nothing."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workload_files import GOOD, loaded, refused, written

from paceline.bench.base import Problem
from paceline.bench.workloads import load_workload
from paceline.errors import UsageError

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


@settings(max_examples=200, deadline=None)
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


def test_the_format_can_be_said(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    assert len(load_workload(path, on_problem="refuse", format_name="plain").items) == 1
    assert "line 1: arrival is missing" in refused(path, format_name="trace")
    assert refused(path, format_name="plane") == "unknown workload format 'plane'; did you mean 'plain'?"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert (
        refused(tmp_path / "none")
        == f"the workload '{tmp_path}/none' cannot be read: No such file or directory; give a file, or 'builtin'"
    )
    assert "Is a directory" in refused(tmp_path)


def test_what_to_do_with_problems_is_said() -> None:
    assert refused("builtin", on_problem="ignore") == "on_problem is 'ignore'; expected 'skip' or 'refuse'"
