"""`paceline verify`: what it prints, its exit status, and faults that were planted into the rules."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline.acceptance import Law, MatchRule, Outcome, RejectionRule, Verification
from paceline.api.verification import DEFAULT_FALSE_ALARM_RATE
from paceline.api.verification import Verification as Verifying
from paceline.cli.verify_app import DEFAULT_RATE
from paceline.runtime.native import runnable_isas

Invoke = Callable[..., Any]  # see conftest.py
QUESTIONS = Path(__file__).parent.parent / "data" / "spec_bench_subset.jsonl"
ROUND = ("--temperature", 0.3, "--top-k", 4)  # narrow enough for a model of random weights to repeat itself


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.txt"
    path.write_text("the hello world the hello world\n\nand of and of and of\n")
    return path


def verified(invoke: Invoke, *arguments: object) -> tuple[int, dict[str, Any]]:
    result = invoke("verify", "--json", "--proposer", "ngram", *arguments)
    assert result.stderr == ""
    parsed: dict[str, Any] = json.loads(result.stdout)
    return result.exit_code, parsed


def test_tokens_are_compared(invoke: Invoke, tiny_llama_path: Path, prompts: Path) -> None:
    status, found = verified(invoke, "-m", tiny_llama_path, "--prompts", prompts, "--max-tokens", 40, "-k", 3)
    assert (status, found["verdict"], found["faults"], found["gaps"]) == (0, "certified", [], [])
    assert (found["rule"], found["proposer"], found["num_speculative_tokens"]) == ("match", "ngram", 3)
    assert (found["num_prompts"], found["num_samples"], found["goodness_of_fit"]) == (2, 1, None)
    assert found["sampling"]["temperature"] == 0
    assert (found["is_chat"], found["runtime"]) == (True, f"native-{runnable_isas()[0]}")
    assert found["comparison"]["num_answers"] == 2
    assert (found["comparison"]["num_differing"], found["comparison"]["first_difference"]) == (0, None)
    assert found["drafts"]["num_draft_tokens"] >= found["drafts"]["num_accepted_tokens"] > 0


def test_distributions_are_tested(invoke: Invoke, tiny_llama_path: Path, prompts: Path) -> None:
    arguments = ("-m", tiny_llama_path, "--prompts", prompts, "--max-tokens", 30, "--samples", 20)
    status, found = verified(invoke, *arguments, "--rule", "rejection", *ROUND)
    assert (status, found["verdict"], found["comparison"]) == (0, "certified", None)
    fit = found["goodness_of_fit"]
    assert (fit["num_answers"], fit["false_alarm_rate"]) == (40, DEFAULT_RATE)
    assert [test["name"] for test in fit["tests"]] == [
        "acceptance",
        "drafted",
        "likelihood",
        "recency",
        "identity",
        "serial",
    ]
    assert not any(test["has_failed"] for test in fit["tests"])


def test_the_table(invoke: Invoke, tiny_llama_path: Path, prompts: Path) -> None:
    arguments = ("verify", "-m", tiny_llama_path, "--prompts", prompts, "--proposer", "ngram", "--max-tokens", 30)
    result = invoke(*arguments, "--num-prompts", 1)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"1 of {prompts}" in result.stdout
    assert result.stdout.endswith("\n\ncertified: every token is that of plain decoding\n")
    result = invoke(*arguments, "--rule", "block", "--samples", 20, *ROUND)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "likelihood  chi-square" in result.stdout
    assert "certified: the samples are distributed as the target's own" in result.stdout


def test_a_planted_token(invoke: Invoke, tiny_llama_path: Path, prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = MatchRule.accept

    def wrong(self: MatchRule, verification: Verification) -> Outcome:
        outcome = right(self, verification)
        if not verification.draft or outcome.num_accepted == len(verification.draft):
            return outcome
        return Outcome(outcome.sequence, outcome.path, (*outcome.tokens[:-1], (outcome.tokens[-1] + 1) % 256))

    monkeypatch.setattr(MatchRule, "accept", wrong)
    arguments = ("-m", tiny_llama_path, "--prompts", prompts, "--max-tokens", 40)
    status, found = verified(invoke, *arguments)
    assert (status, found["verdict"]) == (1, "failed")
    first = found["comparison"]["first_difference"]
    assert first["line"] in (1, 3)
    assert (first["expected"] + 1) % 256 == first["found"]
    assert first["margin"] > 0
    result = invoke("verify", "--proposer", "ngram", *arguments)
    assert result.exit_code == 1
    assert f"line {first['line']}, token {first['index']}: {first['found']} (" in result.stdout
    assert f"instead of {first['expected']} (" in result.stdout
    assert "top-2 margin" in result.stdout
    assert "\n\nFAILED: " in result.stdout
    status, found = verified(invoke, *arguments, "--temperature", 1, "--top-k", 1)
    assert (status, found["comparison"]["first_difference"]["margin"]) == (1, None)  # nothing else could come


def test_a_planted_bias(invoke: Invoke, tiny_llama_path: Path, prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RejectionRule, "accept_probability", lambda _self, p, _q, token: float(p[token] > 0))
    arguments = ("-m", tiny_llama_path, "--prompts", prompts, "--max-tokens", 30, "--samples", 20)
    status, found = verified(invoke, *arguments, "--rule", "rejection", *ROUND)
    assert (status, found["verdict"]) == (1, "failed")
    assert found["goodness_of_fit"]["tests"][0]["has_failed"]

    def anything(_self: RejectionRule, p: Law, _q: Law, _token: int) -> Law:
        return np.full(len(p), 1 / len(p))

    monkeypatch.undo()
    monkeypatch.setattr(RejectionRule, "residual", anything)
    result = invoke("verify", "--proposer", "ngram", *arguments, "--rule", "rejection", *ROUND)
    assert result.exit_code == 1
    assert "impossible  line " in result.stdout
    assert "came that the target gives no probability" in result.stdout


def test_nothing_drafted_is_no_certificate(invoke: Invoke, tiny_llama_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"prompt": "of"}\n')
    status, found = verified(invoke, "-m", tiny_llama_path, "--prompts", path, "--max-tokens", 2)
    assert (status, found["verdict"]) == (1, "inconclusive")
    assert "no draft was ever tried" in found["statement"]


def test_an_interrupt(invoke: Invoke, tiny_llama_path: Path, prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_self: Verifying) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Verifying, "run", interrupted)
    status, found = verified(invoke, "-m", tiny_llama_path, "--prompts", prompts)
    assert (status, found["verdict"], found["is_interrupted"]) == (130, "inconclusive", True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--proposer", "off"), "the proposer is 'off', so there is no speculation to certify"),
        (("--rule", "typical"), "the rule 'typical' is lossy by design: there is nothing to certify"),
        (("--rule", "block", "--max-tokens", 2), "--max-tokens is 2; expected at least 3"),
        (("--samples", 2), "--samples is 2 at --temperature 0"),
        (("--num-prompts", 0), "--num-prompts is 0"),
        (("--false-alarm-rate", 0), "--false-alarm-rate is 0"),
        (("--numerics", -1), "--numerics is -1"),
        (("--false-alarm-rate", 1e-3), "--false-alarm-rate is 0.001, but tokens are compared"),
        (("--rule", "block", "--numerics", 0.1), "--numerics is 0.1, but distributions are tested"),
        (("--temperature", 3), "--temperature is 3"),
        (("--seed", -1), "seed is -1"),
        (("--no-chat", "--chat-template", "x"), "--no-chat uses no template"),
        (("--max-model-len", 8), "line 1: "),
    ],
)
def test_usage(invoke: Invoke, tiny_llama_path: Path, prompts: Path, arguments: tuple[object, ...], says: str) -> None:
    result = invoke("verify", "-m", tiny_llama_path, "--prompts", prompts, "--proposer", "ngram", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("paceline: ")
    assert says in result.stderr


def test_options_that_are_missing(invoke: Invoke, prompts: Path) -> None:
    assert invoke("verify", "--prompts", prompts).exit_code == 2
    assert invoke("verify", "--proposer", "ngram").exit_code == 2
    assert DEFAULT_RATE == DEFAULT_FALSE_ALARM_RATE


def test_the_default_model(invoke: Invoke, smollm2_path: Path) -> None:
    arguments = ("-m", smollm2_path, "--prompts", QUESTIONS, "--num-prompts", 3, "--max-tokens", 24)
    status, found = verified(invoke, *arguments, "-k", 4)
    assert (status, found["verdict"], found["comparison"]["num_answers"]) == (0, "certified", 3)
