"""A model that answers prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.api.collector import Collector
from paceline.api.deliveries import Deliveries
from paceline.api.inputs import ChatOptions, Conversation, Prompt, as_conversations, as_prompts
from paceline.api.loading import ModelOptions, load
from paceline.api.outputs import RequestOutput, joined
from paceline.api.prefill import PrefillProgress
from paceline.api.speculation import Speculation
from paceline.api.stream import Stream
from paceline.api.terms import Terms
from paceline.engine import DEFAULT_MAX_NUM_SEQS, Request
from paceline.models import Progress, Quantization, SilentProgress, Tokenizer, Tool
from paceline.runtime.native import NativeRuntime
from paceline.sampling_params import SamplingParams


class LLM:
    """Loads a model once and answers as often as asked. Not thread-safe.

    `model`: an alias ("smollm2"), the path of a .gguf file or of a folder, or a model on the Hugging Face hub:
    `org/repo`, `org/repo:QUANT`, `org/repo/file.gguf`, each with `@revision` if wanted. `quantization`: how to pack the
    weights of safetensors, "q8" (by default), "q4" or "none"; only for those. `speculation`: None, a proposer's name, a
    mapping or a `Speculation`; under its default rule it changes the speed and never the text. `max_model_len`: the
    most tokens that prompt and answer may have together, the model's context by default. `max_num_seqs`: the most
    requests that are computed at the same time; more wait. `cache_tokens`: tokens that the cache holds for all of them
    together, enough for one whole request at least; by default for `max_num_seqs` whole ones, up to 16,384 tokens where
    one needs less. What ended requests have left there is reused by those that begin in the same way, unless
    `prefix_caching` is False. `num_threads`: what the process may use by default. `chat_template`: the name of one of
    the model's templates, else a file to take instead of them. `progress` is told about fetching, packing and long
    prompts.
    """

    def __init__(
        self,
        model: str | Path = "smollm2",
        *,
        quantization: Quantization | None = None,
        speculation: Speculation | Mapping[str, Any] | str | None = None,
        max_model_len: int | None = None,
        max_num_seqs: int = DEFAULT_MAX_NUM_SEQS,
        cache_tokens: int | None = None,
        prefix_caching: bool = True,
        num_threads: int | None = None,
        chat_template: str | Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        options = ModelOptions.of(
            quantization=quantization,
            speculation=speculation,
            max_model_len=max_model_len,
            max_num_seqs=max_num_seqs,
            cache_tokens=cache_tokens,
            prefix_caching=prefix_caching,
            num_threads=num_threads,
            chat_template=chat_template,
            progress=progress,
        )
        self._speculation = options.speculation
        self._deliveries = Deliveries(PrefillProgress(progress if progress is not None else SilentProgress()))
        loaded = load(model, options, self._deliveries.record)
        self._runtime = loaded.runtime
        self._tokenizer = loaded.tokenizer
        self._encoder = loaded.encoder
        self._engine = loaded.engine
        self._rule = loaded.rule
        self._grammars = loaded.grammars

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
        return self._encoder.has_template

    @property
    def max_model_len(self) -> int:
        return self._engine.max_length

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: SamplingParams | None = None,
        *,
        namespace: str = "",
        priority: int = 0,
    ) -> list[RequestOutput]:
        """Continue each prompt, text or token ids. One prompt alone gives a list of one.

        `namespace`: requests of different ones share nothing that the cache remembers. `priority`: higher ones are
        served before others that are open, such as streams.
        """
        terms = Terms.of(params, namespace, priority).compiled(self._grammars)
        return self._run([terms.choices(self._encoder.prompt(prompt)) for prompt in as_prompts(prompts)])

    def chat(
        self,
        messages: Conversation | Sequence[Conversation],
        params: SamplingParams | None = None,
        *,
        tools: Sequence[Tool] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        namespace: str = "",
        priority: int = 0,
    ) -> list[RequestOutput]:
        """Answer each conversation, a list of {"role": …, "content": …}. One conversation alone gives a list of one.

        `tools`: functions that the model may call, in the OpenAI form. `chat_template_kwargs`: more variables of the
        chat template, such as `enable_thinking`. `namespace` and `priority` as in `generate`.
        """
        terms = Terms.of(params, namespace, priority).compiled(self._grammars)
        options = ChatOptions(tools, chat_template_kwargs)
        conversations = as_conversations(messages)
        return self._run([terms.choices(self._encoder.conversation(each, options)) for each in conversations])

    def stream(
        self,
        prompt: Prompt | Conversation,
        params: SamplingParams | None = None,
        *,
        tools: Sequence[Tool] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        namespace: str = "",
        priority: int = 0,
    ) -> Stream:
        """The answer to one prompt or conversation, as it is written: iterating computes it. `tools` and
        `chat_template_kwargs`, as in `chat`, are for conversations.

        Requests are computed together: whatever else is asked for while it is open brings this one forward too.
        """
        terms = Terms.of(params, namespace, priority).compiled(self._grammars)
        options = ChatOptions(tools, chat_template_kwargs)
        sequence, collector = self._add(terms.only_choice(self._encoder.either(prompt, options)))
        return Stream(collector, self._step, lambda: self._abort(sequence))

    def _run(self, prompts: Sequence[Sequence[Request]]) -> list[RequestOutput]:
        """The answers to each prompt, given as the requests of its choices."""
        added: dict[int, Collector] = {}
        try:
            groups = [self._add_choices(choices, added) for choices in prompts]
            while any(collector.finish_reason is None for collector in added.values()):
                self._step()
        except BaseException:
            for sequence in added:
                self._abort(sequence)
            raise
        return [joined([collector.output() for collector in group]) for group in groups]

    def _add_choices(self, choices: Sequence[Request], added: dict[int, Collector]) -> list[Collector]:
        """Queue the choices of one prompt, which the first of them reads for all. Each is in `added` then."""
        collectors, first = list[Collector](), None
        for request in choices:
            sequence, collector = self._add(replace(request, fork_of=first))
            added[sequence] = collector
            collectors.append(collector)
            first = sequence if first is None else first
        return collectors

    def _add(self, request: Request) -> tuple[int, Collector]:
        collector = Collector(request, self._tokenizer, self._rule)
        return self._deliveries.submit(self._engine, request, collector), collector

    def _abort(self, sequence: int) -> None:
        self._deliveries.abort(self._engine, sequence)

    def _step(self) -> None:
        self._deliveries.step(self._engine)
