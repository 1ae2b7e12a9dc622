"""Requirements of a result: how they are written, what they speak of, and what falls short of them."""

from dataclasses import replace

import pytest
from bench_blocks import run

from paceline.bench.figures.latency import SLO_NAMES
from paceline.bench.requirements import (
    Condition,
    find_shortfalls,
    parse_requirements,
    parse_slo,
    slo_conditions,
    with_failures,
)
from paceline.bench.result import Run, Spread
from paceline.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("speedup>=1.5", Condition("speedup", ">=", 1.5)),
        (" identical=1.0 ", Condition("identical_fraction", "=", 1)),
        ("tau>2", Condition("mean_acceptance_length", ">", 2)),
        ("ttft_p99<=300", Condition("ttft_ms.p99", "<=", 300)),
        ("e2e_ms.mean<1e3", Condition("e2e_ms.mean", "<", 1000)),
        ("peak_rss<=2e9", Condition("memory_bytes.peak_rss", "<=", 2e9)),
        ("memory_bytes.caches<1", Condition("memory_bytes.caches", "<", 1)),
        ("speedup_low>=0.97", Condition("speedup_low", ">=", 0.97)),
        ("code_editing:speedup>=1.5", Condition("speedup", ">=", 1.5, "code_editing")),
        ("*:speedup>=1", Condition("speedup", ">=", 1, "*")),
        ("@ngram:4:tau>=2", Condition("mean_acceptance_length", ">=", 2, mode="ngram:4")),
        ("chat@c=8:tau>=2", Condition("mean_acceptance_length", ">=", 2, "chat", load="c=8")),
        ("@2.5/s@ngram:tau>=2", Condition("mean_acceptance_length", ">=", 2, mode="ngram", load="2.5/s")),
        ("all@off@c=1:goodput>1", Condition("goodput", ">", 1, mode="off", load="c=1")),
    ],
)
def test_conditions(text: str, expected: Condition) -> None:
    assert parse_requirements(text) == (expected,)
    assert parse_requirements(str(expected)) == (expected,)


def test_several_conditions() -> None:
    assert [str(each) for each in parse_requirements("speedup>=1.5,identical=1.0, chat@c=1:num_errors=0")] == [
        "speedup>=1.5",
        "identical_fraction=1",
        "chat@c=1:num_errors=0",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"^require holds ''; expected \[CLASS\]"),
        ("speedup", r"^require holds 'speedup'; expected"),
        ("speedup>=1,,", r"^require holds ''"),
        ("speedup=>1", r"^require holds 'speedup=>1'; expected"),
        ("speedup==1", r"^require holds 'speedup==1'; expected"),
        ("speedup>=", r"^require holds 'speedup>='; expected"),
        ("speedup>=fast", r"^require holds 'speedup>=fast'; expected a number behind the sign, not 'fast'"),
        ("speedup>=nan", r"expected a number behind the sign, not 'nan'"),
        ("speedup<inf", r"expected a number behind the sign, not 'inf'"),
        ("spedup>=1", r"with the figure 'spedup'; expected one of identical, tau"),
        ("verdict=1", r"with the figure 'verdict'; expected one of"),
        ("ttft_ms>=1", r"with the figure 'ttft_ms'; expected one of"),
        ("ttft_ms.p42>=1", r"with the figure 'ttft_ms\.p42'; expected one of"),
        ("memory_bytes>=1", r"with the figure 'memory_bytes'; expected one of .*memory_bytes\.PART"),
        ("a@b@c:speedup>=1", r"^require holds 'a@b@c:speedup>=1'; expected at most one class"),
        ("a@c=1@c=2:speedup>=1", r"expected at most one class, one @MODE and one @LOAD"),
        ("a@:speedup>=1", r"expected at most one class"),
    ],
)
def test_bad_requirements(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_requirements(text)


OFF = run(mode="off", speedup=None, verdict=None, ttft_ms=Spread(1, 1, 1, 900))
FAST = run(speedup=2.0, speedup_ci=(1.4, 2.6), identical_fraction=1.0, ttft_ms=Spread(1, 1, 1, 250))
SLOW = run(speedup=0.9, concurrency=8, identical_fraction=0.75, ttft_ms=Spread(1, 1, 1, 350))
CHAT = run(speedup=1.2, task_class="chat", memory_bytes={"target": 5}, time_share={"draft": 0.25})
RUNS = [OFF, FAST, SLOW, CHAT]


def missed(text: str, runs: list[Run] = RUNS) -> list[str]:
    return [str(each) for each in find_shortfalls(runs, parse_requirements(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("speedup>=0.9", []),
        ("speedup>=1.5", ["speedup>=1.5 is required, and all, ngram-4, c=8 has speedup 0.9"]),
        ("@c=1:speedup>=1.5,@c=1:identical=1.0", []),
        ("@c=1:speedup>2", ["all@c=1:speedup>2 is required, and all, ngram-4, c=1 has speedup 2"]),
        ("identical=1", ["identical_fraction=1 is required, and all, ngram-4, c=8 has identical_fraction 0.75"]),
        ("*@c=1:speedup>=1.5", ["*@c=1:speedup>=1.5 is required, and chat, ngram-4, c=1 has speedup 1.2"]),
        ("chat:speedup<1.2", ["chat:speedup<1.2 is required, and chat, ngram-4, c=1 has speedup 1.2"]),
        ("@c=1:speedup_low>=1.4,@c=1:speedup_high<=2.6", []),
        ("speedup_low>=1", ["speedup_low>=1 is required, and all, ngram-4, c=8 has no speedup_low"]),
        ("ttft_p99<=300", ["ttft_ms.p99<=300 is required, and all, ngram-4, c=8 has ttft_ms.p99 350"]),
        ("@off:ttft_p99<=300", ["all@off:ttft_ms.p99<=300 is required, and all, off, c=1 has ttft_ms.p99 900"]),
        ("chat:memory_bytes.target<=5,chat:time_share.draft=0.25", []),
        (
            "chat:peak_rss<1",
            ["chat:memory_bytes.peak_rss<1 is required, and chat, ngram-4, c=1 has no memory_bytes.peak_rss"],
        ),
        (
            "tau>=2",
            [
                f"mean_acceptance_length>=2 is required, and all, ngram-4, c={c} has no mean_acceptance_length"
                for c in (1, 8)
            ],
        ),
        ("poem:speedup>=1", ["poem:speedup>=1 is required, and nothing that was measured matches it"]),
        ("@c=3:speedup>=1", ["all@c=3:speedup>=1 is required, and nothing that was measured matches it"]),
    ],
)
def test_what_falls_short(text: str, expected: list[str]) -> None:
    assert missed(text) == expected


def test_a_figure_that_rounds_to_what_is_required_is_told_in_full() -> None:
    almost = run(speedup=1.99999999)
    assert missed("speedup>=2", [almost]) == ["speedup>=2 is required, and all, ngram-4, c=1 has speedup 1.99999999"]


def test_off_is_meant_where_there_is_nothing_else() -> None:
    assert missed("ttft_p99<=1000", [OFF]) == []
    assert missed("speedup>=1", [OFF]) == ["speedup>=1 is required, and all, off, c=1 has no speedup"]
    assert missed("speedup>=1", []) == ["speedup>=1 is required, and nothing that was measured matches it"]


def test_targets_for_times() -> None:
    assert parse_slo("ttft=200, tpot=50.5,e2e=1e4") == {"ttft": 200, "tpot": 50.5, "e2e": 10_000}
    assert [str(each) for each in slo_conditions(parse_slo("ttft=300"))] == ["ttft_ms.p99<=300"]
    found = find_shortfalls(RUNS, slo_conditions({"ttft": 300}))
    assert [(each.run, each.figure) for each in found] == [(SLOW, 350)]
    assert len(slo_conditions(dict.fromkeys(SLO_NAMES, 1.0))) == 3


def test_what_failed_falls_short_unless_it_is_allowed() -> None:
    failing = replace(SLOW, num_answers=97, num_errors=3)
    conditions = with_failures(slo_conditions({"ttft": 1e9}))
    (short,) = find_shortfalls([failing], conditions)
    assert (short.condition.name, short.figure) == ("failed_fraction", 0.03)
    assert find_shortfalls([replace(failing, num_errors=0)], conditions) == []
    for allowed in ("num_errors<=5", "failed_fraction<=0.05"):
        assert find_shortfalls([failing], with_failures(parse_requirements(allowed))) == []
    assert with_failures(()) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"^slo holds ''; expected ttft=MS, tpot=MS, e2e=MS"),
        ("ttft", r"^slo holds 'ttft'; expected"),
        ("itl=3", r"^slo holds 'itl=3'; expected"),
        ("ttft=soon", r"^slo holds 'ttft=soon'; expected a number behind the sign, not 'soon'"),
        ("ttft=0", r"^slo holds 'ttft=0'; expected a number of milliseconds above 0"),
        ("ttft=nan", r"not 'nan'"),
        ("ttft=1,ttft=2", r"^slo holds ttft twice"),
    ],
)
def test_bad_targets(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_slo(text)
