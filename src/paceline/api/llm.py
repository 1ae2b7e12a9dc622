"""A model that answers prompts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from paceline.acceptance import create_acceptance_rule
from paceline.api.collector import Collector
from paceline.api.deliveries import Deliveries
from paceline.api.inputs import (
    ChatOptions,
    Conversation,
    Prompt,
    as_conversations,
    as_prompts,
    as_token_ids,
    is_conversation,
)
from paceline.api.outputs import RequestOutput
from paceline.api.prefill import PrefillProgress
from paceline.api.speculation import Speculation
from paceline.api.stream import Stream
from paceline.engine import Engine, Request
from paceline.errors import UsageError
from paceline.models import Progress, Quantization, SilentProgress, Tokenizer, Tool, encode_chat, open_model
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.sampling_params import SamplingParams


class LLM:
    """Loads a model once and answers as often as asked. Not thread-safe.

    `model`: an alias ("smollm2"), the path of a .gguf file or of a folder, or a model on the Hugging Face hub:
    `org/repo`, `org/repo:QUANT`, `org/repo/file.gguf`, each with `@revision` if wanted. `quantization`: how to pack the
    weights of safetensors, "q8" (by default), "q4" or "none"; only for those. `speculation`: None, a proposer's name, a
    mapping or a `Speculation`; it changes the speed and never the text. `max_model_len`: the most tokens that prompt
    and answer may have together, the model's context by default. `num_threads`: what the process may use by default.
    `chat_template`: the name of one of the model's templates, else a file to take instead of them. `progress` is told
    about fetching, packing and long prompts.
    """

    def __init__(
        self,
        model: str | Path = "smollm2",
        *,
        quantization: Quantization | None = None,
        speculation: Speculation | Mapping[str, Any] | str | None = None,
        max_model_len: int | None = None,
        num_threads: int | None = None,
        chat_template: str | Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._speculation = Speculation.of(speculation)
        controller, proposers = self._speculation.create()
        progress = progress if progress is not None else SilentProgress()
        self._deliveries = Deliveries(PrefillProgress(progress))
        with open_model(model, quantization=quantization, progress=progress) as opened:
            self._template = opened.chat_template(chat_template)  # first: a name may be wrong, and loading takes long
            self._tokenizer = opened.tokenizer()
            options = NativeOptions(
                max_length=max_model_len, num_threads=num_threads, vocab_size=self._tokenizer.vocab_size
            )
            self._runtime = NativeRuntime.load(opened, options, progress)
        self._engine = Engine(
            self._runtime,
            controller,
            proposers,
            create_acceptance_rule("match"),
            eos_token_ids=self._tokenizer.stop_ids,
            banned_token_ids=self._tokenizer.unproducible_ids,
            records=self._deliveries.record,
        )

    @property
    def runtime(self) -> NativeRuntime:
        return self._runtime

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def speculation(self) -> Speculation:
        return self._speculation

    @property
    def has_chat_template(self) -> bool:
        """Whether the model knows conversations: `chat` needs it to."""
        return self._template is not None

    @property
    def max_model_len(self) -> int:
        return self._engine.max_length

    def generate(self, prompts: Prompt | Sequence[Prompt], params: SamplingParams | None = None) -> list[RequestOutput]:
        """Continue each prompt, text or token ids. One prompt alone gives a list of one."""
        return self._run([self._encode(prompt) for prompt in as_prompts(prompts)], params)

    def chat(
        self,
        messages: Conversation | Sequence[Conversation],
        params: SamplingParams | None = None,
        *,
        tools: Sequence[Tool] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> list[RequestOutput]:
        """Answer each conversation, a list of {"role": …, "content": …}. One conversation alone gives a list of one.

        `tools`: functions that the model may call, in the OpenAI form. `chat_template_kwargs`: more variables of the
        chat template, such as `enable_thinking`.
        """
        options = ChatOptions(tools, chat_template_kwargs)
        return self._run([self._encode_chat(each, options) for each in as_conversations(messages)], params)

    def stream(
        self,
        prompt: Prompt | Conversation,
        params: SamplingParams | None = None,
        *,
        tools: Sequence[Tool] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> Stream:
        """The answer to one prompt or conversation, as it is written: iterating computes it. `tools` and
        `chat_template_kwargs`, as in `chat`, are for conversations.

        Requests are served in the order in which they were made, so a later call first brings this one to its end.
        """
        ids = self._encode_any(prompt, ChatOptions(tools, chat_template_kwargs))
        sequence, collector = self._add(ids, params)
        return Stream(collector, self._step, lambda: self._abort(sequence))

    def _encode(self, prompt: Prompt) -> list[int]:
        if not isinstance(prompt, str):
            return as_token_ids(prompt)
        least = self._tokenizer.min_num_tokens(prompt)
        if least >= self.max_model_len:  # before a text of megabytes is tokenised for nothing
            raise UsageError(
                f"the prompt has at least {least} tokens, and prompt and answer together may have "
                f"{self.max_model_len}; shorten it"
            )
        return self._tokenizer.encode(prompt)

    def _encode_any(self, prompt: Prompt | Conversation, options: ChatOptions) -> list[int]:
        if is_conversation(prompt):
            return self._encode_chat(prompt, options)
        if options != ChatOptions():
            raise UsageError("tools and chat_template_kwargs are for conversations; give messages, or leave them out")
        return self._encode(cast(Prompt, prompt))

    def _encode_chat(self, messages: Conversation, options: ChatOptions) -> list[int]:
        if self._template is None:
            raise UsageError("this model has no chat template: give a plain prompt (--no-chat), or chat_template")
        tools, variables = options
        return encode_chat(self._tokenizer, self._template, messages, tools=tools, variables=variables)

    def _run(self, prompts: list[list[int]], params: SamplingParams | None) -> list[RequestOutput]:
        added: dict[int, Collector] = {}
        try:
            for ids in prompts:
                sequence, collector = self._add(ids, params)
                added[sequence] = collector
            while any(collector.finish_reason is None for collector in added.values()):
                self._step()
        except BaseException:
            for sequence in added:
                self._abort(sequence)
            raise
        return [collector.output() for collector in added.values()]

    def _add(self, ids: list[int], params: SamplingParams | None) -> tuple[int, Collector]:
        if params is not None and not isinstance(params, SamplingParams):
            raise UsageError(f"params is {params!r}; expected SamplingParams or None")
        collector = Collector(tuple(ids), self._tokenizer)
        request = Request(ids, params if params is not None else SamplingParams())
        return self._deliveries.submit(self._engine, request, collector), collector

    def _abort(self, sequence: int) -> None:
        self._deliveries.abort(self._engine, sequence)

    def _step(self) -> None:
        self._deliveries.step(self._engine)
