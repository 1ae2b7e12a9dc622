"""What is advised, why, and the configuration that comes of it."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_blocks import run

from paceline import LLM, SamplingParams, Speculation
from paceline.bench.advice import advise, when_to_measure_again
from paceline.bench.advice_config import config_toml, speculation_of
from paceline.bench.base import Mode
from paceline.bench.report.tables import advice_table
from paceline.bench.result import Advice, Result, Run
from paceline.errors import UsageError

MODES = (Mode("off"), Mode("ngram:2", "ngram", 2), Mode("ngram:4", "ngram", 4))


def off(**fields: Any) -> Run:
    return run(mode="off", **fields)


def measured(speedup: float, mode: str = "ngram:4", *, spread: float = 0.1, **fields: Any) -> Run:
    interval = (speedup - spread, speedup + spread)
    verdict = "faster" if interval[0] > 1 else "slower" if interval[1] < 1 else "undecided"
    return run(mode=mode, **{"speedup": speedup, "speedup_ci": interval, "verdict": verdict, **fields})


def advised(*runs: Run) -> Advice:
    [advice] = advise(runs, MODES)
    return advice


def test_the_fastest_that_pays_is_advised() -> None:
    found = advised(off(), measured(1.5, "ngram:2"), measured(1.8), measured(0.5, "late"))
    assert found == Advice("all", "ngram:4", 4, None, "decodes 1.80 (1.70 to 1.90) times as fast as off at c=1")


def test_the_shorter_of_equally_fast_drafts_is_advised() -> None:
    assert advised(measured(1.5), measured(1.5, "ngram:2")).mode == "ngram:2"
    assert advised(measured(1.5, "ngram:2"), measured(1.5)).mode == "ngram:2"


def test_a_fast_mode_that_is_not_sure_to_be_is_not_advised() -> None:
    assert advised(measured(1.5, "ngram:2"), measured(1.9, spread=1)).mode == "ngram:2"


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ((off(),), "no other mode was measured"),
        ((off(), run(mode="ngram:4")), "there are no blocks in which off and another mode both answered everything"),
        (
            (off(), measured(0.8), measured(0.7, "ngram:2")),
            "every other mode is slower at c=1, the best of them, ngram:4, at 0.80 (0.70 to 0.90)",
        ),
        (
            (off(), measured(1.05), measured(0.7, "ngram:2")),
            "no mode is faster beyond doubt at c=1: the best, ngram:4, gave 1.05 (0.95 to 1.15)",
        ),
        (
            (off(), measured(2, speedup_ci=None, verdict="undecided", num_blocks=3)),
            "no mode is faster beyond doubt at c=1: the best, ngram:4, gave 2.00, and 3 blocks are too few to tell",
        ),
    ],
)
def test_off_is_advised_where_nothing_pays(runs: tuple[Run, ...], reason: str) -> None:
    assert advised(*runs) == Advice("all", "off", 0, None, reason)


@pytest.mark.parametrize(
    ("gains", "most", "reason"),
    [
        ({1: 2, 4: 1.5, 8: 0.8, 16: 2}, 4, "from c=8 on it is slower, 0.80 (0.70 to 0.90)"),
        ({1: 2, 4: 1.0}, 1, "from c=4 on it is not sure to pay, 1.00 (0.90 to 1.10)"),
        ({1: 2, 4: 1.5, 2: 1.7}, None, "it pays up to c=4 too, the most that was measured"),
    ],
)
def test_where_it_stops_paying(gains: dict[int, float], most: int | None, reason: str) -> None:
    runs = [each for c, gain in gains.items() for each in (off(concurrency=c), measured(gain, concurrency=c))]
    found = advised(*runs)
    assert (found.mode, found.max_concurrency) == ("ngram:4", most)
    assert found.reason == f"decodes 2.00 (1.90 to 2.10) times as fast as off at c=1; {reason}"


def test_a_mode_that_pays_only_under_load_is_not_advised() -> None:
    assert advised(measured(0.9), measured(2, concurrency=4)).mode == "off"


def test_open_loops_decide_where_no_loop_is_closed() -> None:
    slow, fast = (measured(gain, concurrency=None, request_rate=rate) for gain, rate in ((1.5, 2.0), (0.5, 10.0)))
    found = advised(fast, slow)
    assert found.mode == "ngram:4"
    assert (found.max_concurrency, found.max_request_rate, found.limit) == (None, 2.0, "2 requests a second")
    assert advice_table([found]).rows[0][3] == "2/s"
    assert found.reason.endswith("at 2/s; from 10/s on it is slower, 0.50 (0.40 to 0.60)")
    assert advised(fast, slow, measured(0.6)).mode == "off"


def test_what_it_costs_and_whether_the_text_is_the_same() -> None:
    plain = off(memory_bytes={"target": 100 * 2**20, "peak_rss": 5})
    taken = {"target": 100 * 2**20, "proposer": 2**20, "caches": 2**19, "peak_rss": 9}
    found = advised(plain, measured(2, memory_bytes=taken, identical_fraction=1.0))
    assert found.reason.endswith("at c=1; it takes 1.5 MiB more memory than off")
    found = advised(plain, measured(2, memory_bytes={"target": 100 * 2**20}, identical_fraction=0.975))
    assert found.reason.endswith("it takes no more memory than off; of its answers 97.5% are those of off")


def test_every_class_has_its_advice() -> None:
    found = advise([off(task_class="code"), measured(2, task_class="code"), off(), measured(0.9)], MODES)
    assert [(advice.task_class, advice.mode) for advice in found] == [("code", "ngram:4"), ("all", "off")]
    assert advise([], MODES) == []


def test_when_to_measure_again() -> None:
    again = when_to_measure_again([measured(1.0, task_class="code"), measured(2), measured(2, concurrency=8)])
    assert again[2:] == [
        "Measure again before serving more than 8 answers at a time: nothing above was measured.",
        "Measure more blocks of what is undecided: code with ngram:4 at c=1 (10 blocks).",
    ]
    for cause in ("model file", "build", "machine", "mix of task classes"):
        assert cause in " ".join(again[:2])
    [_, _, above] = when_to_measure_again([measured(2, concurrency=None, request_rate=2.5)])
    assert above.startswith("Measure again before serving more than 2.5 a second:")


def result(*runs: Run) -> Result:
    return Result(
        provenance={},
        fingerprint={"machine": {"cpu": "x\ny", "threads": 2}, "model_sha256": "abc"},
        settings={},
        runs=runs,
        advice=advise(runs, MODES),
    )


def test_a_configuration_is_what_llm_takes(tiny_llama_path: Path) -> None:
    text = config_toml(result(off(task_class="code"), measured(0.9, task_class="code"), off(), measured(2)), MODES)
    config = tomllib.loads(text)
    assert config == {"speculation": {"proposer": "ngram", "num_speculative_tokens": 4, "rule": "match"}}
    assert Speculation.of(config["speculation"]) == Speculation("ngram", 4)
    llm = LLM(tiny_llama_path, speculation=config["speculation"])
    [answer] = llm.generate([[1, 2, 3, 1, 2, 3]], SamplingParams(max_tokens=4, ignore_eos=True))
    assert len(answer.token_ids) == 4


def test_comments_tell_the_rest() -> None:
    runs = [
        off(task_class="co\nde"),
        measured(0.8, task_class="co\nde"),
        off(),
        measured(2),
        measured(0.5, concurrency=8),
    ]
    lines = config_toml(result(*runs), MODES, "block").splitlines()
    comments = [line for line in lines if line.startswith("#")]
    assert (
        "# co?de: off; every other mode is slower at c=1, the best of them, ngram:4, at 0.80 (0.70 to 0.90)" in comments
    )
    [overall] = [line for line in comments if "all classes together" in line]
    assert overall.startswith(
        "# all classes together: ngram:4, 4 draft tokens, up to 1 answers at a time; decodes 2.00"
    )
    assert comments[-3:] == ['#   machine.cpu = "x\\ny"', "#   machine.threads = 2", '#   model_sha256 = "abc"']
    assert any(line.startswith("# Measure again when") for line in comments)
    assert lines[-4:] == ["[speculation]", 'proposer = "ngram"', "num_speculative_tokens = 4", 'rule = "block"']


def test_a_configuration_of_off() -> None:
    config = tomllib.loads(config_toml(result(off()), MODES))
    assert config == {"speculation": {"proposer": "off", "rule": "match"}}
    assert Speculation.of(config["speculation"]) == Speculation()


def test_what_cannot_be_configured() -> None:
    with pytest.raises(UsageError, match=r"^unknown proposer 'endpoint'; choose from off, "):
        speculation_of(Mode("endpoint", "endpoint", 1))
    with pytest.raises(UsageError, match=r"^the result holds no advice"):
        config_toml(replace(result(), advice=()), MODES)
    assert speculation_of(MODES[1]) == {"proposer": "ngram", "num_speculative_tokens": 2, "rule": "match"}
