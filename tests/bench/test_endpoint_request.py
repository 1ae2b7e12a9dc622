"""What goes over the wire for an ask: to a server of whom nothing is known, and to those whose extensions are."""

import asyncio
from dataclasses import fields

import pytest
from endpoint_desk import MODE, ask, in_session, sent_to

from paceline import SamplingParams
from paceline.bench.base import Ask, Message
from paceline.bench.targets.endpoint import EndpointOptions, EndpointTarget
from paceline.bench.targets.openai_request import EXTENSIONS, STANDARD, UNSENT
from paceline.testing.endpoint import ScriptedEndpoint

PLAIN = {
    "model": "scripted",
    "messages": [{"role": "user", "content": "Say it."}],
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 0.0,
    "max_tokens": 256,
}


def test_an_unknown_server_is_sent_what_is_standard() -> None:
    assert sent_to("scripted", ask()) == PLAIN


def test_every_sampling_parameter_is_sent_or_refused() -> None:
    always = {"temperature", "max_tokens", "top_p", "logit_bias"}

    assert {*always, *STANDARD, *EXTENSIONS, *UNSENT} == {field.name for field in fields(SamplingParams)}


def test_parameters_go_under_their_names_where_they_differ_from_their_defaults() -> None:
    given = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "min_p": 0.1,
        "seed": 7,
        "stop": ["x", "y"],
        "stop_token_ids": [3],
        "ignore_eos": True,
        "min_tokens": 2,
        "max_tokens": 9,
        "repetition_penalty": 1.5,
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
        "bad_words": ["no"],
        "allowed_token_ids": [1, 2, 3],
    }

    sent = sent_to("scripted", ask(**given, logit_bias={5: 2.0}))

    assert sent == {**PLAIN, **given, "logit_bias": {"5": 2.0}}


def test_top_p_of_1_is_said_where_it_matters() -> None:
    """Servers have defaults of their own for it."""
    assert sent_to("scripted", ask(temperature=1.0)) == {**PLAIN, "temperature": 1.0, "top_p": 1.0}


@pytest.mark.parametrize("owner", ["vllm", "paceline"])
def test_vllm_and_paceline_are_asked_for_token_ids_and_usage_with_every_chunk(owner: str) -> None:
    assert sent_to(owner, ask(), prefix_caching=True) == {
        **PLAIN,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_token_ids": True,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
    }


def test_sglang_is_asked_for_its_speculation() -> None:
    assert sent_to("sglang", ask(), prefix_caching=True) == {
        **PLAIN,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_spec_tokens_details": True,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
    }


def test_llama_cpp_is_asked_for_timings_and_has_a_name_of_its_own_for_the_penalty() -> None:
    sent = sent_to("llamacpp", ask(repetition_penalty=1.25), prefix_caching=True)

    assert sent == {**PLAIN, "timings_per_token": True, "top_k": -1, "min_p": 0.0, "repeat_penalty": 1.25}


@pytest.mark.parametrize("owner", ["vllm", "sglang"])
def test_prompts_share_nothing_of_a_cache_with_salts(owner: str) -> None:
    """Or the first round would be other work than the second, and a warm server other work than a cold one."""
    salts = [sent_to(owner, ask())["cache_salt"] for _ in range(2)]

    assert salts[0] != salts[1]


def test_prompts_are_not_cached_by_llama_cpp() -> None:
    assert sent_to("llamacpp", ask())["cache_prompt"] is False
    assert sent_to("llamacpp", ask(), extra_body={"cache_prompt": True})["cache_prompt"] is True


def test_a_prediction_goes_with_a_conversation() -> None:
    sent = sent_to("scripted", ask(prediction="it"))

    assert sent == {**PLAIN, "prediction": {"type": "content", "content": "it"}}


def test_completions_get_the_messages_one_behind_the_other() -> None:
    messages = (Message("system", "Be brief."), Message("user", "Say it."))
    endpoint = ScriptedEndpoint()

    in_session(endpoint, lambda session: session.answer(Ask(messages, SamplingParams(max_tokens=4))), api="completions")

    body = endpoint.asked[-1].body
    assert body is not None
    assert (endpoint.asked[-1].path, body["prompt"]) == ("/v1/completions", "Be brief.\n\nSay it.")
    assert "messages" not in body


def test_completions_need_a_limit() -> None:
    endpoint = ScriptedEndpoint()

    answer = in_session(endpoint, lambda session: session.answer(ask(max_tokens=None)), api="completions")

    assert answer.error is not None
    assert answer.error.startswith("max_tokens is None; expected a number")
    assert "max_tokens" not in sent_to("scripted", ask(max_tokens=None))


def test_an_extra_body_goes_in_last() -> None:
    extra = {"temperature": 0.25, "chat_template_kwargs": {"enable_thinking": False}}

    assert sent_to("scripted", ask(), extra_body=extra) == {**PLAIN, **extra}


def test_the_model_that_was_named() -> None:
    assert sent_to("vllm", ask(), model="mine")["model"] == "mine"


@pytest.mark.parametrize(
    "given", ["http://host:8000", "http://host:8000/", "http://host:8000/v1", "http://host:8000/v1/"]
)
def test_an_address_with_or_without_v1(given: str) -> None:
    endpoint = ScriptedEndpoint()

    asyncio.run(EndpointTarget.connect({MODE.name: given}, EndpointOptions(transport=endpoint.transport())))

    assert [asked.path for asked in endpoint.asked] == ["/v1/models", "/version", "/props", "/metrics"]


def test_the_key_comes_from_the_environment_and_is_in_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")
    endpoint = ScriptedEndpoint()
    options = EndpointOptions(key_variable="SOME_KEY", transport=endpoint.transport())

    target = asyncio.run(EndpointTarget.connect({MODE.name: "http://host"}, options))

    assert {asked.headers["authorization"] for asked in endpoint.asked} == {"Bearer secret"}
    assert "secret" not in repr(target.describe())
