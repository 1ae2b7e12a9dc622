"""Results written to JSON and read back; what is no result says what is wrong with it."""

import json
import os
import stat
from copy import deepcopy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from bench_blocks import NGRAM, OFF_MODE, answer, pair

from paceline.bench.base import Counts
from paceline.bench.figures import block_sums, summarise
from paceline.bench.result import Advice, BlockSums, Difference, ReplayRun, Result, Run
from paceline.bench.result_file import from_json, read_result, to_json, write_result
from paceline.errors import UsageError


def example() -> Result:
    counts = Counts(4, 8, 3, 9, 5, (3, 2), {3: 3, 0: 1})
    blocks = [each for i in range(6) for each in pair(i, answer(), answer(tpot=0.05, counts=counts))]
    return Result(
        provenance={"paceline": "0.1.0", "command": "paceline bench — ü, \udcff", "nested": [1, {"a": None}]},
        fingerprint={"machine": {"cpu": "x", "threads": 2}, "model": "abc"},
        settings={"slo": {"ttft": 200.0}},
        runs=tuple(summarise(blocks, modes=(OFF_MODE, NGRAM), memory={"ngram-4": {"target": 3}})),
        forward_ms={"1": 10.0, "4": 12.5},
        floor_ms=8.0,
        differences=(
            Difference("ngram-4", "a", 0, 3, 17, None, "x[y|]"),
            Difference("m", "b", 1, 3, "left", "right", ""),
        ),
        replay=(ReplayRun("code", "ngram", 4, 10, 100, 2.5, 0.5, (0.75, 0.25), 1.5),),
        advice=(Advice("all", "ngram-4", 4, None, "it pays"),),
        blocks=tuple(map(block_sums, blocks)),
        notes=("a note",),
        is_complete=False,
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    result = example()
    write_result(result, tmp_path / "a.json")
    assert read_result(tmp_path / "a.json") == result
    assert from_json(to_json(result)) == result
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_names_of_the_fields(tmp_path: Path) -> None:
    write_result(example(), tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert content["format"] == 1
    assert tuple(content["blocks"][0]) == tuple(field.name for field in fields(BlockSums))
    run = content["runs"][1]
    assert (run["task_class"], run["mode"], run["concurrency"], run["request_rate"]) == ("code", "ngram-4", 1, None)
    assert set(run) >= {
        *("output_tokens_per_second", "speedup", "mean_acceptance_length", "draft_acceptance_rate"),
        *("acceptance_by_position", "identical_fraction", "memory_bytes"),
    }
    assert run["speedup_ci"] == [pytest.approx(2), pytest.approx(2)]
    for name in ("ttft_ms", "tpot_ms", "chunk_gap_ms", "e2e_ms"):
        assert list(run[name]) == ["mean", "p50", "p90", "p99"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(ValueError, match=r"^provenance\.x\[1\] is nan, which JSON does not have$"):
        write_result(replace(example(), provenance={"x": [1, float("nan")]}), path)
    assert path.read_text() == "old"
    (tmp_path / "link.json").symlink_to(path)
    write_result(example(), tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert read_result(path) == example()
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_paths_that_cannot_be_written_or_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^cannot write .*/no/a\.json: No such file or directory; name a file"):
        write_result(example(), tmp_path / "no" / "a.json")
    with pytest.raises(UsageError, match=r"^cannot write .*: Is a directory"):
        write_result(example(), tmp_path)
    with pytest.raises(UsageError, match=r"^cannot read .*/no\.json: No such file or directory$"):
        read_result(tmp_path / "no.json")


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_result(replace(example(), runs=(), blocks=()), path)
        assert json.loads(os.read(end, 60_000))["format"] == 1
    finally:
        os.close(end)


def changed(content: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    content = deepcopy(content)
    *parents, last = path.split("/")
    place: Any = content
    for step in parents:
        place = place[int(step) if step.isdigit() else step]
    place[int(last) if last.isdigit() else last] = value
    return content


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("format", 2, r"^format is 2; this version reads format 1: measure again"),
        ("format", True, r"^format is True; this version"),
        ("runs", None, r"^runs is None; expected a list"),
        ("runs/1/speedup", "2", r"^runs\[1\]\.speedup is '2'; expected a number"),
        ("runs/1/speedup", True, r"^runs\[1\]\.speedup is True; expected a number"),
        ("runs/1/num_blocks", 1.5, r"^runs\[1\]\.num_blocks is 1\.5; expected an integer"),
        ("runs/1/num_blocks", None, r"^runs\[1\]\.num_blocks is None; expected an integer"),
        ("runs/1/speedup_ci", [1.0], r"^runs\[1\]\.speedup_ci is \[1\.0\]; expected a list of 2"),
        ("runs/1/acceptance_by_position/0", "x", r"^runs\[1\]\.acceptance_by_position\[0\] is 'x'; expected a number"),
        ("runs/1/ttft_ms", {"mean": 1}, r"^runs\[1\]\.ttft_ms is \{'mean': 1\}; expected a field 'p50' in it"),
        ("runs/1/memory_bytes/target", "3", r"^runs\[1\]\.memory_bytes\.target is '3'; expected an integer"),
        ("runs/1/spedup", 2, r"^runs\[1\]\.spedup is 2; expected only task_class, mode"),
        ("differences/0/expected", 1.5, r"^differences\[0\]\.expected is 1\.5; expected an integer or a text or null"),
        ("blocks/0/has_loop", 1, r"^blocks\[0\]\.has_loop is 1; expected true or false"),
        ("provenance", [], r"^provenance is \[\]; expected an object"),
        ("blocks/0/seconds", 10**400, r"^blocks\[0\]\.seconds is 1000.*; expected a number of at most 1e308"),
        ("runs/0/concurrency", None, r"^runs\[0\] has to have one of concurrency and request_rate"),
        ("blocks/1/mode", "off", r"^blocks\[1\] is there twice; expected each class, mode and load once"),
        ("is_complete", None, r"^is_complete is None; expected true or false"),
        ("more", 1, r"^more is 1; expected only provenance, fingerprint"),
    ],
)
def test_wrong_fields_are_named(place: str, value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_json(changed(json.loads(json.dumps(to_json(example()))), place, value))


def test_whole_numbers_are_numbers() -> None:
    content = changed(to_json(example()), "runs/1/speedup", 2)
    run: Run = from_json(content).runs[1]
    assert isinstance(run.speedup, float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"is no JSON: Expecting value"),
        ("[1]", r"a\.json: expected a result of `paceline bench --json`, an object with a field"),
        ("{}", r"a\.json: expected a result"),
        ('{"format": 1}', r"a\.json: the result is \{\}; expected a field 'provenance' in it"),
        ('{"format": 1, "floor_ms": NaN}', r"is no JSON: floor_ms is nan"),
        ('{"format": 1, "floor_ms": 1e999}', r"is no JSON: floor_ms is inf"),
        ('{"format": 9}', r"a\.json: format is 9"),
        ("[" * 100_000, r"is no JSON: "),
    ],
)
def test_files_that_are_no_result(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_result(tmp_path / "a.json")


def test_a_missing_field_is_named() -> None:
    content = to_json(example())
    del content["runs"][0]["goodput"]
    with pytest.raises(UsageError, match=r"^runs\[0\] is \{.*; expected a field 'goodput' in it"):
        from_json(content)


def test_a_file_of_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"is no JSON: "):
        read_result(tmp_path / "a.json")
