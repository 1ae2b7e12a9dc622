"""The chapter made of results of compare.py: one row for each file and engine, and a true sentence on who is faster."""

from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "tools"

PACELINE = [1.0, 1.1, 1.2, 1.3]


def result(title: str, times_paceline: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Of two engines; the other's seconds are Paceline's by the first factor, in the last round by the second."""
    tasks = {
        "decode": 1.0,
        "prefill": 100.0,
        "rows 1": 1.0,
        "rows 2": 1.5,
        "rows 3": 1.75,
        "rows 4": 2.0,
        "rows 16": 8.0,
    }
    seconds = {}
    for task, size in tasks.items():
        first, last = times_paceline.get(task, (2.0, 2.0))
        own = [size * value for value in PACELINE]
        other = [value * factor for value, factor in zip(own, (first, first, first, last), strict=True)]
        seconds[task] = {"paceline": own, "llama.cpp+fa": other}
    return {
        "title": title,
        "provenance": {"date": "2026-01-02", "command": "python benchmarks/compare.py", "cpu": "A processor"},
        "model": {"name": "a.gguf", "sha256": "0123456789abcdef", "bytes": 2e6, "types": {"Q4_K": 0.7, "Q6_K": 0.3}},
        "threads": 2,
        "context": 64,
        "prefill": 512,
        "engines": {
            "paceline": {"package": "paceline", "version": "0.1"},
            "llama.cpp+fa": {"package": "llama-cpp-python", "version": "0.3"},
        },
        "seconds": seconds,
    }


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(TOOLS))
    import comparisons

    return comparisons


def rows_of(text: str, title: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith(f"| {title} ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_one_row_for_each_file_and_engine(comparisons: Any) -> None:
    text = comparisons.comparison([result("A", {}), result("B", {})])
    times_paceline, times_other, paired = rows_of(text, "A")
    assert times_paceline[1:] == [
        "paceline",
        *2 * ["1150 (1025–1275)"],
        "1.50",
        "2.00",
        "",
        "8.00",
        "115000 (102500–127500)",
    ]
    assert times_other[1] == "llama.cpp+fa"
    assert times_other[4:8] == ["1.50", "2.00", "", "8.00"], "v(n); n = 8 was not measured"
    assert paired == ["A", "llama.cpp+fa", *4 * ["2 (2–2)"], "", *2 * ["2 (2–2)"]]
    assert len(rows_of(text, "B")) == 3
    assert "Q4_K 70%, Q6_K 30%" in text
    assert "Versions: llama-cpp-python 0.3, paceline 0.1." in text


def test_nobody_is_faster(comparisons: Any) -> None:
    text = comparisons.verdict([result("A", {})])
    assert text == "In nothing measured here was another engine faster than Paceline in three rounds of four."


def test_where_another_engine_is_faster_is_said(comparisons: Any) -> None:
    faster = {
        "prefill": (0.5, 0.5),
        "rows 2": (0.8, 0.8),
        "rows 3": (0.9, 0.9),
        "rows 4": (0.7, 0.7),
        "rows 16": (0.9, 0.9),
    }
    text = comparisons.verdict([result("A", {}), result("B", faster)])
    assert "another engine was faster" in text
    assert "- llama.cpp+fa on B: prefill (0.50), forwards of n = 2–16 (0.70 to 0.90)" in text
    assert " on A" not in text
    assert "Undecided" not in text


def test_rows_that_do_not_follow_each_other_are_named_apart(comparisons: Any) -> None:
    text = comparisons.verdict([result("A", {"rows 1": (0.8, 0.8), "rows 3": (0.9, 0.9), "rows 4": (0.9, 0.9)})])
    assert "forwards of n = 1, 3–4 (0.80 to 0.90)" in text


def test_quartiles_on_both_sides_of_one_decide_nothing(comparisons: Any) -> None:
    text = comparisons.verdict([result("A", {"decode": (0.9, 1.5)})])
    assert "In nothing measured here was another engine faster" in text
    assert "Undecided, with quartiles on both sides of 1:\n\n- llama.cpp+fa on A: decoding (0.90)" in text


def test_results_of_different_settings_are_not_put_in_one_table(comparisons: Any) -> None:
    other = result("B", {}) | {"context": 1000}
    with pytest.raises(ValueError):
        comparisons.comparison([result("A", {}), other])
