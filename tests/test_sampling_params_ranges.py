"""Every sampling parameter's range: the ends are taken, what lies outside is refused by name."""

from dataclasses import fields, replace

import pytest

from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams


def keep(_: object, row: object) -> object:
    return row


ENDS: list[tuple[str, list[object]]] = [
    ("temperature", [0, 0.0, 1e-6, 1, 2]),
    ("top_p", [5e-324, 1, 1.0]),
    ("top_k", [-1, 0, 1, 10**9]),
    ("min_p", [0, 1]),
    ("repetition_penalty", [5e-324, 1, 2, 1e300]),
    ("presence_penalty", [-2, 2]),
    ("frequency_penalty", [-2, 2.0]),
    ("logit_bias", [{}, {0: -100, 5: 100.0}, ((0, 1),)]),
    ("bad_words", [[], ["a", " b"], ("x" * 1024,)]),
    ("allowed_token_ids", [None, [0], range(5)]),
    ("seed", [None, 0, 2**64 - 1]),
    ("logprobs", [None, -1, 0, 20]),
    ("prompt_logprobs", [None, -1, 0, 20]),
    ("logits_processors", [[], [keep]]),
    ("n", [1]),
    ("max_tokens", [None, 1]),
    ("min_tokens", [0, 256]),
    ("stop_token_ids", [[], [0, 3]]),
    ("ignore_eos", [True, False]),
    ("stop", ["a", []]),
    ("response_format", [None, {"type": "text"}, {"type": "json_object"}, {"type": "regex", "pattern": "a"}]),
]


def test_every_parameter_is_here() -> None:
    assert {name for name, _ in ENDS} == {field.name for field in fields(SamplingParams)}


@pytest.mark.parametrize(("name", "values"), ENDS)
def test_the_ends_of_each_range(name: str, values: list[object]) -> None:
    for value in values:
        params = SamplingParams(**{name: value})  # type: ignore[arg-type]
        assert replace(params) == params
        assert hash(replace(params)) == hash(params)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("temperature", -1, "temperature is -1; expected 0 or a number from 1e-06 to 2"),
        ("temperature", 1e-7, "temperature is 1e-07; expected 0 or"),
        ("temperature", 2.1, "temperature is 2.1; expected 0 or"),
        ("temperature", float("inf"), "temperature is inf"),
        ("top_p", 0, "top_p is 0; expected a number above 0, at most 1"),
        ("top_p", 1.1, "top_p is 1.1"),
        ("top_k", -2, "top_k is -2; expected an integer of at least -1"),
        ("top_k", 2.0, "top_k is 2.0"),
        ("min_p", -0.1, "min_p is -0.1; expected a number from 0 to 1"),
        ("min_p", float("nan"), "min_p is nan"),
        ("repetition_penalty", 0, "repetition_penalty is 0; expected a number above 0"),
        ("repetition_penalty", float("inf"), "repetition_penalty is inf"),
        ("presence_penalty", 2.1, "presence_penalty is 2.1; expected a number from -2 to 2"),
        ("frequency_penalty", -2.1, "frequency_penalty is -2.1; expected a number from -2 to 2"),
        ("frequency_penalty", "1", "frequency_penalty is '1'"),
        ("logit_bias", {0: 101}, r"logit_bias\[0\] is 101; expected a number from -100 to 100"),
        ("logit_bias", {"0": 1}, "logit_bias holds the key '0'; expected a mapping from token ids"),
        ("logit_bias", {-1: 1}, "logit_bias holds the key -1"),
        ("logit_bias", None, "logit_bias is None; expected a mapping"),
        ("logit_bias", ((0, 1), (0, 2)), "expected one bias for a token id"),
        ("logit_bias", (3,), "logit_bias holds 3"),
        ("bad_words", "abc", "bad_words is 'abc'; expected a sequence of texts"),
        ("bad_words", [""], "bad_words holds ''; expected texts of 1 to 1,024 characters"),
        ("bad_words", ["a"] * 1001, "bad_words holds 1001 texts; expected at most 1000"),
        ("allowed_token_ids", [], "allowed_token_ids is empty; expected None or at least one"),
        ("allowed_token_ids", [-1], "allowed_token_ids holds -1"),
        ("seed", -1, "seed is -1; expected None or an integer from 0 to 18446744073709551615"),
        ("seed", 2**64, "seed is 18446744073709551616"),
        ("seed", True, "seed is True"),
        ("n", 0, "n is 0; expected an integer from 1 to 16384"),
        ("logprobs", 21, "logprobs is 21; expected None or an integer from -1 to 20"),
        ("logprobs", True, "logprobs is True"),
        ("prompt_logprobs", -2, "prompt_logprobs is -2; expected None or an integer from -1 to 20"),
        ("logits_processors", [3], "logits_processors holds 3; expected functions"),
        ("logits_processors", keep, "logits_processors is .*; expected a sequence of functions"),
    ],
)
def test_what_lies_outside_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(UsageError, match="^" + message if not message.startswith("expected") else message):
        SamplingParams(**{name: value})  # type: ignore[arg-type]


def test_several_answers_need_a_temperature() -> None:
    assert SamplingParams(n=3, temperature=0.5).n == 3
    with pytest.raises(UsageError, match="n is 3 at temperature 0, where all would be the same; expected 1"):
        SamplingParams(n=3, temperature=0)


def test_biases_are_kept_in_the_order_of_the_ids() -> None:
    assert SamplingParams(logit_bias={5: 1, 2: -1}) == SamplingParams(logit_bias={2: -1, 5: 1})
    assert SamplingParams(logit_bias={5: 1, 2: -1}).logit_bias == ((2, -1), (5, 1))
