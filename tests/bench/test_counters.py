"""Counters of `/metrics`: whose they are, and what happened between two readings of them."""

import re
from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paceline.bench.base import Counts
from paceline.bench.targets.counters import CounterResetError, counts_between, has_only_gauges, read_counters
from paceline.bench.targets.json_fields import EndpointError

VLLM = """\
# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="org/m, \\"x\\" {1}"} 10.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="org/m"} 1e1 1796027800
vllm:spec_decode_num_drafts_created{engine="0"} 1.79e+09
vllm:spec_decode_num_draft_tokens_total{engine="0"} 30
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 12
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 9
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 3
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="2"} 0
vllm:generation_tokens_total{engine="0"} 100
vllm:e2e_request_latency_seconds_bucket{le="+Inf"} 5
process_start_time_seconds 1.7e+09
"""

LLAMA = """\
llamacpp:tokens_predicted_total 42
llamacpp:spec_decode_num_drafts_total 4
llamacpp:spec_decode_num_draft_tokens_total 32
llamacpp:spec_decode_num_accepted_tokens_total 25
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 4
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="1"} 3
"""


def _between(before: str, after: str, num_answers: int = 0, num_tokens: int = 0) -> Counts:
    first, second = read_counters(before), read_counters(after)
    assert first is not None
    assert second is not None
    return counts_between(first, second, num_answers, num_tokens)


def _zeroed(text: str) -> str:
    """What the server showed when it began."""
    return re.sub(r" \d+$", " 0", text, flags=re.MULTILINE)


def _page(prefix: str, generation: str, **values: float) -> str:
    lines = [f"{prefix}spec_decode_{name}_total {value}" for name, value in values.items() if name != "generated"]
    return "\n".join([f"{prefix}{generation} {values['generated']}", *lines])


def test_vllm_counters_are_summed_over_engines() -> None:
    after = VLLM.replace("1e1 1796027800", "15").replace('{engine="0"} 30', '{engine="0"} 45')
    after = after.replace('{engine="0"} 12', '{engine="0"} 18').replace('position="0"} 9', 'position="0"} 14')
    after = after.replace('position="1"} 3', 'position="1"} 4').replace('{engine="0"} 100', '{engine="0"} 121')

    counts = _between(VLLM, after, num_answers=1)

    # 121 - 100 tokens, one of them from prefill; 14 steps of 20 tokens, 6 of which came from drafts
    assert counts == Counts(14, 20, 5, 15, 6, (5, 1))


def test_llama_cpp_counters_of_a_real_run() -> None:
    """Of a run of llama.cpp's server with two answers: it decoded 15 times, beside one prefill for each."""
    counts = _between(_zeroed(LLAMA), LLAMA, num_answers=2)

    assert counts == Counts(15, 40, 4, 32, 25, (4, 3))


def test_a_server_that_does_not_speculate_has_one_step_for_each_token() -> None:
    counts = _between("vllm:generation_tokens_total 5", "vllm:generation_tokens_total 25", num_answers=2)

    assert counts == Counts(num_target_steps=18, num_emitted=18)


def test_a_server_that_counts_no_tokens_is_believed_the_answers() -> None:
    before, after = (f"paceline_spec_decode_num_drafts_total {count}" for count in (1, 3))

    assert _between(before, after, num_answers=1, num_tokens=9) == Counts(8, 8, 2)


def test_own_names_go_before_those_that_are_there_for_others() -> None:
    reading = read_counters("vllm:generation_tokens_total 5\npaceline_generation_tokens_total 5\n")

    assert reading is not None
    assert reading.dialect == "paceline"


def test_a_series_that_is_new_began_at_zero() -> None:
    before = 'vllm:generation_tokens_total{engine="0"} 5\n'
    after = before + 'vllm:generation_tokens_total{engine="1"} 7\n'

    assert _between(before, after).num_emitted == 7


@pytest.mark.parametrize(
    "after",
    [
        VLLM.replace('{engine="0"} 30', '{engine="0"} 29'),
        VLLM.replace('vllm:generation_tokens_total{engine="0"} 100\n', ""),
        VLLM.replace('{engine="0"} 30', '{engine="0"} 90').replace("1.7e+09", "1.8e+09"),
    ],
    ids=["went back", "is gone", "another process"],
)
def test_a_server_that_was_restarted(after: str) -> None:
    with pytest.raises(CounterResetError, match="the server was restarted"):
        _between(VLLM, after)


@pytest.mark.parametrize("text", ["", "# nothing\n", "process_start_time_seconds 5\n", "other:tokens_total 5\n"])
def test_no_counters_of_a_known_server(text: str) -> None:
    assert read_counters(text) is None
    assert not has_only_gauges(text)


def test_sglang_has_gauges_only() -> None:
    text = '# TYPE sglang:spec_accept_length gauge\nsglang:spec_accept_length{model_name="m"} 2.7\n'

    assert read_counters(text) is None
    assert has_only_gauges(text)


@pytest.mark.parametrize(
    "line",
    [
        "vllm:generation_tokens_total",
        "vllm:generation_tokens_total five",
        "vllm:generation_tokens_total NaN",
        "vllm:generation_tokens_total +Inf",
        'vllm:generation_tokens_total{engine="0} 5',
        "vllm:generation_tokens_total{engine=0} 5",
        "vllm:generation_tokens_total 5\nvllm:generation_tokens_total 5",
    ],
)
def test_a_line_that_cannot_be_read(line: str) -> None:
    with pytest.raises(EndpointError, match="/metrics holds"):
        read_counters(line)


@pytest.mark.parametrize("position", ["", "x", "99999999999", "9" * 5000])
def test_a_position_that_no_draft_has(position: str) -> None:
    before = f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{position}"}} 1'

    with pytest.raises(EndpointError, match=f"of '{position[:20]}.*; expected an integer below"):
        _between(before, before)


def test_more_accepted_than_drafted_is_no_count() -> None:
    page = "vllm:spec_decode_num_draft_tokens_total {}\nvllm:spec_decode_num_accepted_tokens_total {}\n"

    with pytest.raises(EndpointError, match="tells that 50 of 2 draft tokens stood"):
        _between(page.format(0, 0), page.format(2, 50))


@given(
    st.fixed_dictionaries(
        {name: st.integers(0, 2**40) for name in ("generated", "num_drafts", "num_draft_tokens", "num_accepted_tokens")}
    ),
    st.integers(0, 100),
    st.sampled_from([("vllm:", "generation_tokens_total"), ("llamacpp:", "tokens_predicted_total")]),
)
def test_steps_are_never_fewer_than_drafts(values: Mapping[str, int], num_answers: int, names: tuple[str, str]) -> None:
    assume(values["num_accepted_tokens"] <= values["num_draft_tokens"])
    counts = _between(_page(*names, **dict.fromkeys(values, 0)), _page(*names, **values), num_answers)

    assert counts.num_target_steps >= counts.num_drafts == values["num_drafts"]
    assert counts.num_draft_tokens == values["num_draft_tokens"]
    assert counts.num_emitted == max(values["generated"] - num_answers, 0)
