"""Speculation of a session: from the server's counters, or from its answers, never from both."""

from typing import Any

import pytest
from endpoint_desk import MODE, answer_to, connected, reported

from paceline.bench.base import Counts, Mode
from paceline.bench.targets.endpoint import endpoint_modes
from paceline.errors import PacelineWarning
from paceline.testing.endpoint import Piece, Reply, ScriptedEndpoint, chat_reply, json_page, text_page
from paceline.testing.virtual_time import run_in_virtual_time


def _metrics(generated: int, drafts: int, drafted: int, accepted: int) -> Reply:
    lines = {
        "tokens_predicted_total": generated,
        "spec_decode_num_drafts_total": drafts,
        "spec_decode_num_draft_tokens_total": drafted,
        "spec_decode_num_accepted_tokens_total": accepted,
    }
    return text_page("".join(f"llamacpp:{name} {value}\n" for name, value in lines.items()))


def _reply(**last: Any) -> Reply:
    return chat_reply([Piece(0.25, "a"), Piece(0.25, "b")], 6, **last)


TIMINGS = {"predicted_n": 6, "draft_n": 4, "draft_n_accepted": 2}
VLLM = {"speculative_decoding": {"num_spec_steps": 1, "num_draft_tokens": 4, "num_accepted_draft_tokens": 2}}
CONNECTING, BEFORE, AFTER = _metrics(90, 1, 8, 3), _metrics(100, 2, 8, 3), _metrics(112, 4, 16, 7)


def test_counters_of_the_server_over_the_session() -> None:
    endpoint = ScriptedEndpoint([_reply(timings=TIMINGS)] * 2, {"/metrics": [CONNECTING, BEFORE, AFTER]})

    answers, report = reported(endpoint, 2)

    assert [(answer.error, answer.counts) for answer in answers] == [(None, None)] * 2
    assert report.counts == Counts(6, 10, 2, 8, 4)


def test_answers_tell_more_than_counters_where_they_tell_all() -> None:
    endpoint = ScriptedEndpoint([_reply(metrics=VLLM)], {"/metrics": [BEFORE, BEFORE, AFTER]})

    answers, report = reported(endpoint, 1)

    assert answers[0].counts == Counts(3, 5, 1, 4, 2)
    assert report.counts is None


def test_a_server_without_counters_tells_them_with_its_answers() -> None:
    answers, report = reported(ScriptedEndpoint([_reply(timings=TIMINGS)]), 1)

    assert answers[0].counts == Counts(3, 5, 0, 4, 2)
    assert report.counts is None


def test_a_server_that_tells_nothing() -> None:
    answers, report = reported(ScriptedEndpoint([_reply()]), 1)

    assert (answers[0].error, answers[0].counts, report.counts) == (None, None, None)


@pytest.mark.parametrize(
    "after", [_metrics(1, 0, 0, 0), text_page("llamacpp:tokens_predicted_total x")], ids=["restarted", "garbage"]
)
def test_counters_that_cannot_be_had_are_warned_of(after: Reply) -> None:
    endpoint = ScriptedEndpoint([_reply()], {"/metrics": [CONNECTING, BEFORE, after]})

    with pytest.warns(PacelineWarning, match="speculation of a block is not told: "):
        answers, report = reported(endpoint, 1)

    assert (answers[0].error, report.counts) == (None, None)


def test_what_a_target_says_of_its_server() -> None:
    model = {"id": "m", "object": "model", "owned_by": "llamacpp", "meta": {"n_params": 5}}
    pages = {
        "/v1/models": [json_page({"data": [{"id": "other"}, model]})],
        "/props": [json_page({"build_info": "b1", "chat_template": "long", "total_slots": 2})],
        "/version": [json_page({"version": "1.2"})],
        "/metrics": [BEFORE],
    }

    target = run_in_virtual_time(connected(ScriptedEndpoint(pages=pages), model="m"))

    assert target.describe() == {
        "kind": "endpoint",
        "api": "chat",
        "extra_body": {},
        "modes": {
            MODE.name: {
                "address": "http://scripted",
                "model": "m",
                "owned_by": "llamacpp",
                "meta": {"n_params": 5},
                "version": "1.2",
                "props": {"build_info": "b1", "total_slots": 2},
                "counters": "llamacpp",
                "prefix_caching": "asked to be off",
            }
        },
    }
    assert target.memory() == {}


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ("sglang:spec_accept_length 2.5", "none: SGLang's gauges cannot be attributed to a block"),
        ("other 5", "none"),
        ("vllm:generation_tokens_total 5", "vllm"),
    ],
)
def test_where_speculation_is_read_from(metrics: str, expected: str) -> None:
    target = run_in_virtual_time(connected(ScriptedEndpoint(pages={"/metrics": [text_page(metrics)]})))

    described = target.describe()["modes"][MODE.name]
    assert (described["counters"], described["prefix_caching"]) == (expected, "the server's")


def test_modes_of_endpoints() -> None:
    modes = endpoint_modes({"off": "http://a", "endpoint": "http://b"})

    assert modes == (Mode("off"), Mode("endpoint", proposer="endpoint"))
    assert [mode.is_off for mode in modes] == [True, False]


def test_prompt_tokens_are_those_of_the_usage() -> None:
    assert answer_to(_reply()).prompt_tokens == 7


def test_more_accepted_than_drafted_is_warned_of_and_not_told() -> None:
    endpoint = ScriptedEndpoint([_reply()], {"/metrics": [BEFORE, BEFORE, _metrics(112, 4, 16, 50)]})

    with pytest.warns(PacelineWarning, match="47 of 8 draft tokens stood"):
        answers, report = reported(endpoint, 1)

    assert (answers[0].error, report.counts) == (None, None)
