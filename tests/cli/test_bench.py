"""`paceline bench`: what it measures, writes, says and refuses. How fast the machine is, is not its business here."""

import asyncio
import errno
import json
import os
import signal
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paceline import LLM
from paceline.acceptance import MatchRule, Outcome, Verification
from paceline.bench import forwards
from paceline.bench.experiment import Experiment
from paceline.bench.result import Result
from paceline.bench.result_file import read_result
from paceline.bench.targets.local import LocalTarget
from paceline.cli import bench as cli_bench
from paceline.cli import failures
from paceline.cli.bench_shown import Shown
from paceline.errors import PacelineError
from paceline.runtime.native import NativeRuntime

Invoke = Callable[..., Any]  # see conftest.py
KEYS = {
    *("task_class", "mode", "concurrency", "request_rate", "output_tokens_per_second", "speedup", "speedup_ci"),
    *("mean_acceptance_length", "draft_acceptance_rate", "acceptance_by_position", "identical_fraction"),
    *("ttft_ms", "tpot_ms", "chunk_gap_ms", "e2e_ms", "memory_bytes"),
}


@pytest.fixture(autouse=True)
def quick_forwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real probe of the memory's bandwidth reads hundreds of megabytes."""
    monkeypatch.setattr(NativeRuntime, "read_bandwidth", lambda _self, **_options: 2e12)
    monkeypatch.setattr(forwards, "ROWS", (1, 2, 4))


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    lines = [
        {"prompt": "a b c a b c a b c", "task_class": "copying"},
        {"prompt": "c c c c", "task_class": "copying"},
        {"prompt": "b a", "task_class": "other", "max_tokens": 5},
    ]
    path = tmp_path / "work.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def bench(invoke: Invoke, long_llama_path: Path, workload: Path) -> Invoke:
    """Run with the tiny model and the workload of three; `bench("--modes", "off")`."""

    def run(*arguments: object) -> Any:
        common = ("-m", long_llama_path, "--workload", workload, "--max-tokens", 12)
        return invoke("bench", *common, "--ignore-eos", *arguments)

    return run


def test_everything_that_a_result_holds(bench: Invoke, tmp_path: Path, long_llama_path: Path) -> None:
    path = tmp_path / "result.json"
    found = bench(
        *("--modes", "off,ngram:2", "--concurrency", "1,2", "--replay", "--json", path, "--slo", "ttft=1e9"),
        *("--price-per-hour", 2, "--report", tmp_path / "report", "--advise", tmp_path / "advice.toml"),
    )
    assert found.exit_code == 0, found.output
    result = json.loads(path.read_text())
    runs = {(run["task_class"], run["mode"], run["concurrency"]): run for run in result["runs"]}
    assert set(runs) == {
        (task_class, mode, concurrency)
        for task_class in ("copying", "other", "all")
        for mode in ("off", "ngram:2")
        for concurrency in (1, 2)
    }
    for run in runs.values():
        assert set(run) >= KEYS
        assert run["num_errors"] == 0
        assert run["output_tokens_per_second"] > 0
        assert run["goodput"] > 0
        assert run["cost_per_million_tokens"] == pytest.approx(2 / 3600 / run["output_tokens_per_second"] * 1e6)
        assert set(run["memory_bytes"]) == {"target", "proposer", "caches", "peak_rss"}
        assert sum(run["time_share"].values()) == pytest.approx(1)
    assert runs["all", "off", 1]["num_output_tokens"] == 12 + 12 + 5
    assert runs["all", "off", 1]["mean_acceptance_length"] == 1
    assert runs["all", "off", 1]["speedup"] is None
    drafting = runs["all", "ngram:2", 1]
    assert drafting["identical_fraction"] == 1
    assert drafting["mean_acceptance_length"] > 1
    assert drafting["memory_bytes"]["proposer"] > 0
    assert set(result["forward_ms"]) == {"1", "2", "4"}
    assert drafting["ceiling"] >= 1
    assert result["provenance"]["model"]["name"] == long_llama_path.name
    assert result["is_complete"] is True
    assert result["differences"] == []
    _check_replay(result, drafting)
    assert (tmp_path / "report" / "report.html").read_text().startswith("<!DOCTYPE html>")
    advised = tomllib.loads((tmp_path / "advice.toml").read_text())["speculation"]
    LLM(long_llama_path, speculation=advised)
    assert "speedup" in found.stdout


def _check_replay(result: dict[str, Any], live: dict[str, Any]) -> None:
    """Nothing of it is chance: at the K of the live run both have the same acceptance."""
    replayed = {
        run["num_speculative_tokens"]: run
        for run in result["replay"]
        if (run["task_class"], run["proposer"]) == ("all", "ngram")
    }
    assert len(replayed) >= 3
    for figure in ("mean_acceptance_length", "draft_acceptance_rate", "acceptance_by_position"):
        assert replayed[2][figure] == live[figure]


def test_sampling_parameters_reach_the_answers(bench: Invoke, tmp_path: Path) -> None:
    """With one token to choose from, what is drawn at any temperature is what is taken at 0."""
    drawn, taken = tmp_path / "drawn.json", tmp_path / "taken.json"
    sampling = ("--temperature", 1.5, "--top-k", 1, "--min-p", 0.1, "--top-p", 0.9)
    for path, arguments in ((drawn, sampling), (taken, ())):
        assert bench("--modes", "off", "--record", path, *arguments).exit_code == 0
    first, second = (json.loads(path.read_text()) for path in (drawn, taken))
    assert first["answers"] == second["answers"]
    params = first["fingerprint"]["params"]
    assert [params[name] for name in ("temperature", "top_k", "min_p", "top_p")] == [1.5, 1, 0.1, 0.9]


def test_an_open_loop(bench: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert bench("--modes", "off", "--request-rate", "200", "--json", path).exit_code == 0
    runs = read_result(path).runs
    assert {(run.concurrency, run.request_rate) for run in runs} == {(None, 200.0)}


def test_a_trace_is_followed(bench: Invoke, tmp_path: Path, workload: Path) -> None:
    lines = [json.loads(line) for line in workload.read_text().splitlines()]
    workload.write_text("".join(json.dumps({"arrival": i / 100, **line}) + "\n" for i, line in enumerate(lines)))
    path = tmp_path / "result.json"
    assert bench("--modes", "off", "--json", path).exit_code == 0
    result = read_result(path)
    assert result.settings["follows_trace"] is True
    assert result.runs[0].request_rate == pytest.approx(3 / 0.02)


def test_a_wrong_text_is_found_and_shown(bench: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accept = MatchRule.accept

    def take_all(self: MatchRule, verification: Verification) -> Outcome:
        """Every draft token, whatever the target says."""
        outcome, draft = accept(self, verification), verification.draft
        return replace(outcome, path=tuple(range(1 + len(draft))), tokens=(*draft, outcome.tokens[-1]))

    monkeypatch.setattr(MatchRule, "accept", take_all)
    path = tmp_path / "result.json"
    found = bench("--modes", "off,ngram:4", "--json", path, "--require", "identical=1.0")
    assert found.exit_code == 1
    assert "identical_fraction=1 is required, and all, ngram:4, c=1 has identical_fraction" in found.stderr
    assert "not that of plain decoding" in found.stdout
    assert read_result(path).differences[0].mode == "ngram:4"


def test_a_requirement_that_falls_short(bench: Invoke) -> None:
    found = bench("--modes", "off,ngram", "--require", "identical=1.0,speedup>=1000")
    assert found.exit_code == 1
    (line,) = [line for line in found.stderr.splitlines() if line.startswith("paceline:")]
    assert "speedup>=1000 is required, and all, ngram, c=1 has speedup" in line


def test_results_are_checked_and_compared_later(bench: Invoke, invoke: Invoke, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    for path in (first, second):
        assert bench("--modes", "off,ngram", "--json", path).exit_code == 0
    assert invoke("bench", "check", first, "--require", "identical=1.0").exit_code == 0
    assert invoke("bench", "check", first, "--require", "tau>=100").exit_code == 1
    compared = invoke("bench", "compare", first, second)
    assert compared.exit_code == 0, compared.output
    assert "verdict" in compared.stdout
    content = json.loads(second.read_text())
    content["fingerprint"]["machine"]["threads"] = 77
    second.write_text(json.dumps(content))
    refused = invoke("bench", "compare", first, second)
    assert refused.exit_code == 2
    assert "machine.threads" in refused.stderr
    assert "--force" in refused.stderr
    assert invoke("bench", "compare", first, second, "--force").exit_code == 0


def test_bad_lines_are_refused_or_left_out_as_asked(bench: Invoke, workload: Path, tmp_path: Path) -> None:
    workload.write_text(workload.read_text() + "no json\n")
    refused = bench("--modes", "off")
    assert refused.exit_code == 2
    assert "line 4" in refused.stderr
    path = tmp_path / "result.json"
    taken = bench("--modes", "off", "--skip-bad-lines", "--json", path)
    assert taken.exit_code == 0
    assert "line 4" in taken.stderr
    assert any("line 4" in note for note in read_result(path).notes)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--modes", "off,eagle"], "choose from off, ngram"),
        (["--modes", "off,off"], "named twice"),
        (["--concurrency", "0"], "--concurrency holds '0'"),
        (["--request-rate", "-1"], "--request-rate holds '-1'"),
        (["--slo", "ttft"], "--slo holds 'ttft'"),
        (["--require", "speed>1"], "--require holds 'speed>1'"),
        (["--price-per-hour", "0"], "--price-per-hour is 0"),
        (["--price-per-hour", "1e308"], "--price-per-hour is 1e+308"),
        (["--json", "/nowhere/at/all.json"], "no such folder"),
        (["--baseline-endpoint", "http://127.0.0.1:9"], "--endpoint"),
        (["--endpoint", "http://127.0.0.1:9", "--modes", "off"], "--modes"),
        (["--endpoint", "http://127.0.0.1:9", "--threads", "0"], "--threads"),
        (["--endpoint", "http://127.0.0.1:9", "--rule", "block"], "--rule"),
        (["--endpoint", "http://127.0.0.1:9"], "--endpoint-model"),
        (["--endpoint-model", "m"], "--endpoint"),
        (["--api-key-env", "HOME"], "--endpoint"),
        (["--replay", "--rule", "rejection"], "--replay"),
        (["--modes", ""], "--modes is ''"),
        (["--rounds", "0"], "--rounds is 0"),
        (["--duration", "0"], "--duration is 0"),
        (["--modes", "ngram", "--advise", "advice.toml"], "name off in --modes"),
        (["--burstiness", "0.5"], "--burstiness"),
        (["--modes", "off", "-k", "2"], "--num-speculative-tokens"),
        (["--task-class", "coping"], "did you mean 'copying'?"),
        (["--num-prompts", "0"], "--num-prompts is 0"),
        (["--workload", "nothing.jsonl"], "nothing.jsonl"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_runs(bench: Invoke, arguments: list[str], said: str) -> None:
    found = bench(*arguments)
    assert found.exit_code == 2, found.output
    assert said in found.stderr
    assert found.stdout == ""


def test_options_of_a_command_go_behind_it(invoke: Invoke) -> None:
    found = invoke("bench", "--rounds", "2", "compare", "a.json", "b.json")
    assert (found.exit_code, "go behind it" in found.stderr) == (2, True)


def test_prompts_that_do_not_fit(bench: Invoke) -> None:
    """Nothing can be answered: a failure, not a table of nothing."""
    found = bench("--modes", "off", "--max-model-len", 3)
    assert found.exit_code == 1
    assert "nothing is answered" in found.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_keeps_what_was_measured(
    bench: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    show = Shown.show

    def interrupt(self: Shown, experiment: Experiment, done: int, total: int) -> None:
        show(self, experiment, done, total)
        if done == 5:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Shown, "show", interrupt)
    path = tmp_path / "result.json"
    found = bench("--rounds", "1000", "--json", path, "--require", "identical=1.0")
    assert found.exit_code == status
    assert "Interrupted" in found.stdout
    result = read_result(path)
    assert not result.is_complete
    assert len(result.blocks) == 5
    assert {run.mode for run in result.runs} == {"off", "ngram"}


def test_an_interrupt_before_anything_was_measured(
    bench: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shown, "show", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    path = tmp_path / "result.json"
    found = bench("--json", path)
    assert (found.exit_code, found.stdout, path.exists()) == (130, "", False)


def test_an_interrupt_behind_the_last_block_is_one_too(
    bench: Invoke, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(30)

    monkeypatch.setattr(LocalTarget, "measure_memory", interrupt)
    path = tmp_path / "result.json"
    assert bench("--json", path, "--require", "identical=1.0").exit_code == 130
    result = read_result(path)
    assert (result.is_complete, len(result.blocks), result.forward_ms) == (False, 6, {})
    assert "interrupted" in invoke("bench", "check", path, "--require", "identical=1.0").stderr


def test_another_interrupt_does_not_lose_what_the_first_one_kept(
    bench: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Experiment.result

    def interrupt(self: Experiment, *arguments: Any) -> Result:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        return result(self, *arguments)

    monkeypatch.setattr(Experiment, "result", interrupt)
    path = tmp_path / "result.json"
    found = bench("--json", path, "--report", tmp_path / "report")
    assert found.exit_code == 130
    assert "speedup" in found.stdout
    assert len(read_result(path).blocks) == 6


def test_a_failure_keeps_what_was_measured(bench: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    show = Shown.show

    def fail(self: Shown, experiment: Experiment, done: int, total: int) -> None:
        show(self, experiment, done, total)
        if done == 3:
            raise PacelineError("the engine fell over")

    monkeypatch.setattr(Shown, "show", fail)
    path = tmp_path / "result.json"
    found = bench("--json", path)
    assert (found.exit_code, found.stderr.count("the engine fell over")) == (1, 1)
    assert "tok/s" in found.stdout
    result = read_result(path)
    assert (result.is_complete, len(result.blocks)) == (False, 3)
    assert "The measurement broke off: the engine fell over" in result.notes


def test_files_do_not_depend_on_each_other_nor_on_a_reader(
    bench: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "result.json")

    def gone(*_: object) -> None:
        raise BrokenPipeError

    path, advice = tmp_path / "result.json", tmp_path / "advice.toml"
    with monkeypatch.context() as patch:
        patch.setattr(cli_bench, "write_result", full)
        found = bench("--json", path, "--advise", advice)
    assert (found.exit_code, "No space left" in found.stderr, "tok/s" in found.stdout) == (1, True, True)
    assert advice.exists()
    monkeypatch.setattr(cli_bench, "print_result", gone)
    monkeypatch.setattr(failures, "_abandon_output", lambda: None)
    assert bench("--json", path).exit_code == 141
    assert read_result(path).is_complete


def test_files_that_cannot_be_written_are_said_before_anything_runs(
    bench: Invoke, tmp_path: Path, workload: Path, long_llama_path: Path
) -> None:
    same = tmp_path / "same"
    for arguments, said in (
        (["--json", tmp_path], "Is a directory"),
        (["--advise", tmp_path / ("x" * 254)], "name too long"),
        (["--json", same, "--advise", same], "so is --json"),
        (["--json", workload], "so is --workload"),
        (["--report", workload], "so is --workload"),
        (["--report", long_llama_path], "no folder"),
    ):
        found = bench(*arguments)
        assert (found.exit_code, found.stdout) == (2, ""), found.output
        assert said in found.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work.jsonl"]


def test_what_is_too_long_takes_nothing_from_the_rest(bench: Invoke, tmp_path: Path, workload: Path) -> None:
    """Neither the warm-up nor the look at the proposer's memory may be wasted on it."""
    workload.write_text(json.dumps({"prompt": "a b " * 500}) + "\n" + workload.read_text())
    path = tmp_path / "result.json"
    assert bench("--json", path, "--max-model-len", 100).exit_code == 0
    runs = {(run.task_class, run.mode): run for run in read_result(path).runs}
    assert (runs["all", "ngram"].num_errors, runs["all", "ngram"].num_answers) == (1, 3)
    found = bench("--max-model-len", 100, "--require", "identical=1.0")
    assert (found.exit_code, "failed_fraction 0.25" in found.stderr) == (1, True)
    assert runs["all", "ngram"].memory_bytes["proposer"] > 0


def test_replay_sees_every_answer_that_was_drawn(bench: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    drawing = ("--temperature", 1.5, "--rounds", 3, "--max-tokens", 40)
    assert bench("--modes", "off,ngram:2", *drawing, "--replay", "--json", path).exit_code == 0
    result = json.loads(path.read_text())
    (live,) = (run for run in result["runs"] if (run["task_class"], run["mode"]) == ("all", "ngram:2"))
    assert live["num_answers"] == 9
    _check_replay(result, live)


def test_a_result_tells_what_its_figures_were_set_against(bench: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    against = ("--slo", "ttft=1e9", "--price-per-hour", 2, "--request-rate", 200, "--burstiness", 0.5)
    assert bench("--modes", "off", *against, "--json", path).exit_code == 0
    settings = read_result(path).settings
    assert (settings["slo"], settings["price_per_hour"], settings["burstiness"]) == ({"ttft": 1e9}, 2, 0.5)


def test_a_duration_is_what_progress_is_set_against(bench: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block alone is the last one; before it nobody is told so, nor has to look at figures each time."""
    shown = list[tuple[int, int]]()
    monkeypatch.setattr(Shown, "show", lambda _self, _experiment, done, total: shown.append((done, total)))
    assert bench("--modes", "off", "--duration", 0.2).exit_code == 0
    assert len(shown) > 8
    assert [done == total for done, total in shown] == [False] * (len(shown) - 1) + [True]


def test_recorded_answers_are_replayed_without_the_model(
    bench: Invoke, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, recordings = tmp_path / "result.json", tmp_path / "answers.json"
    assert bench("--modes", "off,ngram:2", "--record", recordings, "--json", path).exit_code == 0
    monkeypatch.setattr(NativeRuntime, "load", None)
    found = invoke("bench", "replay", recordings, "-k", "1,2")
    assert found.exit_code == 0, found.output
    live = next(run for run in read_result(path).runs if (run.task_class, run.mode) == ("all", "ngram:2"))
    row = next(line.split() for line in found.stdout.splitlines() if line.split()[:3] == ["all", "ngram", "2"])
    assert row[5] == f"{live.mean_acceptance_length:.2f}"
    refused = invoke("bench", "replay", recordings, "--proposers", "eagle")
    assert (refused.exit_code, "unknown proposer 'eagle'" in refused.stderr) == (2, True)
    assert invoke("bench", "replay", path).exit_code == 2


def test_memory_of_a_proposer_is_seen_behind_a_long_prompt(bench: Invoke, tmp_path: Path, workload: Path) -> None:
    """Which is read in several steps, and answered in few."""
    workload.write_text(json.dumps({"prompt": "a b c d " * 200}) + "\n")
    path = tmp_path / "result.json"
    assert bench("--modes", "off,ngram", "--max-tokens", 4, "--json", path).exit_code == 0
    memory = {run.mode: run.memory_bytes["proposer"] for run in read_result(path).runs}
    assert memory["ngram"] > 8 * 800  # what it keeps of the 800 tokens of the prompt
