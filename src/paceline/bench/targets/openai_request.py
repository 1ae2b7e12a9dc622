"""Requests to OpenAI's interface: what an ask becomes, with the extensions that the server at hand is known to take."""

from collections.abc import Mapping
from secrets import token_hex
from typing import Any, Literal

from paceline.bench.base import Ask
from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams

Api = Literal["chat", "completions"]
ServerKind = Literal["paceline", "vllm", "sglang", "llamacpp", "unknown"]

PATHS: Mapping[Api, str] = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}

UNSENT = ("n", "logprobs", "prompt_logprobs", "logits_processors", "response_format")
"""Parameters that a benchmark has no use for, that no request can carry, or for which servers have different names."""

STANDARD = ("stop", "presence_penalty", "frequency_penalty", "seed")
EXTENSIONS = (
    "top_k",
    "min_p",
    "repetition_penalty",
    "stop_token_ids",
    "ignore_eos",
    "min_tokens",
    "bad_words",
    "allowed_token_ids",
)
OWN_DEFAULTS = ("top_k", "min_p", "repetition_penalty")
"""What servers have defaults of their own for, llama.cpp built in and vLLM from the model's `generation_config.json`:
sent to those that are known to take them even where nothing was asked for, or two servers would do different work."""

COUNTING: Mapping[ServerKind, Mapping[str, Any]] = {
    "paceline": {"return_token_ids": True},
    "vllm": {"return_token_ids": True},
    "sglang": {"return_spec_tokens_details": True},
    "llamacpp": {"timings_per_token": True},
    "unknown": {},
}
"""What makes a server tell of every chunk how many tokens it holds, or of an answer how it was drafted."""

CONTINUOUS_USAGE = ("paceline", "vllm", "sglang")


def without_prefix_cache(kind: ServerKind) -> dict[str, Any]:
    """What keeps a server from answering out of what an earlier prompt left in its cache, empty where none is known.
    vLLM and SGLang share a prefix only between requests of one salt: each gets its own."""
    if kind in ("vllm", "sglang"):
        return {"cache_salt": token_hex(16)}
    return {"cache_prompt": False} if kind == "llamacpp" else {}


def request_body(ask: Ask, api: Api, model: str, kind: ServerKind, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON to send; `extra` goes in last and replaces what has its names. A model without conversations gets the
    messages one behind the other. `prediction` has a place in conversations only.

    Raises UsageError for sampling parameters that cannot be sent.
    """
    body: dict[str, Any] = {"model": model, "stream": True, "stream_options": _stream_options(kind)}
    if api == "chat":
        body["messages"] = [{"role": message.role, "content": message.content} for message in ask.messages]
        if ask.prediction is not None:
            body["prediction"] = {"type": "content", "content": ask.prediction}
    else:
        body["prompt"] = "\n\n".join(message.content for message in ask.messages)
    return {**body, **_sampling(ask.params, api, kind), **COUNTING[kind], **extra}


def _stream_options(kind: ServerKind) -> dict[str, bool]:
    options = {"include_usage": True}
    if kind in CONTINUOUS_USAGE:
        options["continuous_usage_stats"] = True
    return options


def _sampling(params: SamplingParams, api: Api, kind: ServerKind) -> dict[str, Any]:
    default = SamplingParams()
    for name in UNSENT:
        if getattr(params, name) != getattr(default, name):
            raise UsageError(f"{name} is {getattr(params, name)!r:.100}; a benchmark of a server cannot send it")
    sent: dict[str, Any] = {"temperature": params.temperature}
    if params.max_tokens is not None:
        sent["max_tokens"] = params.max_tokens
    elif api == "completions":
        raise UsageError("max_tokens is None; expected a number, as the completions interface takes 16 for none")
    if params.temperature > 0:
        sent["top_p"] = params.top_p
    for name in (*STANDARD, *EXTENSIONS):
        if getattr(params, name) != getattr(default, name) or (kind != "unknown" and name in OWN_DEFAULTS):
            sent[name] = _plain(getattr(params, name))
    if params.logit_bias:
        sent["logit_bias"] = {str(token): bias for token, bias in dict(params.logit_bias).items()}
    return _named_for(kind, sent)


def _named_for(kind: ServerKind, sent: dict[str, Any]) -> dict[str, Any]:
    if sent.get("top_k") == 0:
        sent["top_k"] = -1  # all of them, in every server's words; SGLang takes no 0
    if kind == "llamacpp" and "repetition_penalty" in sent:
        sent["repeat_penalty"] = sent.pop("repetition_penalty")
    return sent


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
