"""A model that answers many prompts at once, for asyncio."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from paceline.api.async_stream import AsyncStream
from paceline.api.collector import Collector
from paceline.api.inputs import (
    ChatOptions,
    Conversation,
    Prompt,
    as_conversations,
    as_prompts,
    as_token_ids,
    is_conversation,
)
from paceline.api.loading import ModelOptions, load
from paceline.api.outputs import RequestOutput, joined
from paceline.api.speculation import Speculation
from paceline.api.terms import Terms
from paceline.checks import check_integer
from paceline.engine import DEFAULT_MAX_NUM_SEQS, AsyncEngine, EngineStats, Request, TokenStream
from paceline.engine.async_engine import DEFAULT_MAX_BUFFERED_TOKENS, DEFAULT_MAX_WAITING
from paceline.models import Progress, Quantization, Tokenizer, Tool
from paceline.runtime.native import NativeRuntime
from paceline.sampling_params import SamplingParams

MAX_ENCODED_IN_LOOP = 2000  # characters, a millisecond of encoding at most; what is longer is encoded in a thread

T = TypeVar("T")


class AsyncLLM:
    """`LLM` for asyncio: any number of coroutines may ask at the same time, and their requests are computed together,
    in a thread. Loading blocks; do it before the event loop runs, or by `asyncio.to_thread`.

    The arguments are those of `LLM`, and the text is the same; `progress` is told about fetching and packing only.
    `max_waiting` and `max_buffered_tokens` are those of `AsyncEngine`: how many requests may wait for their first token
    before a new one waits for its turn, and how many tokens a stream may be ahead of its reader.

    Belongs to the event loop in which it is first used. Raises EngineDeadError from there on if the engine dies.
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
        max_waiting: int = DEFAULT_MAX_WAITING,
        max_buffered_tokens: int = DEFAULT_MAX_BUFFERED_TOKENS,
    ) -> None:
        check_integer("max_waiting", max_waiting, 1)  # here too: loading takes long
        check_integer("max_buffered_tokens", max_buffered_tokens, 1)
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
        self._loaded = load(model, options, None)
        self._max_waiting = max_waiting
        self._max_buffered_tokens = max_buffered_tokens
        self._running: AsyncEngine | None = None
        self._compiling = asyncio.Lock()

    @property
    def runtime(self) -> NativeRuntime:
        return self._loaded.runtime

    @property
    def tokenizer(self) -> Tokenizer:
        return self._loaded.tokenizer

    @property
    def speculation(self) -> Speculation:
        return self._speculation

    @property
    def has_chat_template(self) -> bool:
        """Whether the model knows conversations: `chat` needs it to."""
        return self._loaded.encoder.has_template

    @property
    def max_model_len(self) -> int:
        return self._loaded.engine.max_length

    def stats(self) -> EngineStats:
        """A snapshot, for any thread."""
        return self._loaded.engine.stats()

    async def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: SamplingParams | None = None,
        *,
        namespace: str = "",
        priority: int = 0,
    ) -> list[RequestOutput]:
        """Continue each prompt, text or token ids. One prompt alone gives a list of one. To cancel the call withdraws
        its requests.

        `namespace`: requests of different ones share nothing that the cache remembers. `priority`: higher ones are
        served before others.
        """
        terms, encoder = Terms.of(params, namespace, priority), self._loaded.encoder
        ids = await _encoded(prompts, lambda: [encoder.prompt(prompt) for prompt in as_prompts(prompts)])
        return await self._answers(ids, await self._compiled(terms))

    async def chat(
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

        `tools` and `chat_template_kwargs` as in `LLM.chat`, `namespace` and `priority` as in `generate`.
        """
        terms, encoder = Terms.of(params, namespace, priority), self._loaded.encoder
        options = ChatOptions(tools, chat_template_kwargs)
        ids = await _encoded(
            messages, lambda: [encoder.conversation(each, options) for each in as_conversations(messages)]
        )
        return await self._answers(ids, await self._compiled(terms))

    def stream(
        self,
        prompt: Prompt | Conversation,
        params: SamplingParams | None = None,
        *,
        tools: Sequence[Tool] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        namespace: str = "",
        priority: int = 0,
    ) -> AsyncStream:
        """The answer to one prompt or conversation, as it is written. It is computed from now on, read or not, and held
        where its reader is behind. Arguments as in `chat`.
        """
        terms = Terms.of(params, namespace, priority)
        engine, encoder = self._engine(), self._loaded.encoder
        options = deepcopy(ChatOptions(tools, chat_template_kwargs))
        asked = _copied(prompt)
        request = terms.only_choice(())
        collector = Collector(request, self.tokenizer, self._loaded.rule)

        async def start() -> TokenStream:
            ids = await _encoded(asked, lambda: encoder.either(asked, options))
            collector.prompt_ids = tuple(ids)
            grammar = (await self._compiled(terms)).grammar
            return await engine.add_request(replace(request, prompt=ids, grammar=grammar))

        return AsyncStream(asyncio.create_task(start()), collector)

    async def close(self) -> None:
        """Withdraw all requests; their streams end with the finish reason "abort". Closing twice does nothing."""
        await self._engine().close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _engine(self) -> AsyncEngine:
        if self._running is None:
            self._running = AsyncEngine(
                self._loaded.engine, max_waiting=self._max_waiting, max_buffered_tokens=self._max_buffered_tokens
            )
        return self._running

    async def _compiled(self, terms: Terms) -> Terms:
        """`Terms.compiled`, in a thread where there is something to compile, one after the other."""
        wanted, grammars = terms.response_format, self._loaded.grammars
        if wanted is None:
            return terms
        grammar = grammars.known(wanted)
        if grammar is None:
            async with self._compiling:
                grammar = await asyncio.to_thread(grammars.compile, wanted)
        return replace(terms, grammar=grammar)

    async def _answers(self, prompts: list[list[int]], terms: Terms) -> list[RequestOutput]:
        """In order; all or none."""
        tasks = [asyncio.create_task(self._answer(terms.choices(ids))) for ids in prompts]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, choices: list[Request]) -> RequestOutput:
        """All choices of one prompt. The first reads it for all, so the others are asked for behind it."""
        async with AsyncExitStack() as stack:
            streams, first = list[tuple[Collector, TokenStream]](), None
            for request in choices:
                tokens = await stack.enter_async_context(
                    await self._engine().add_request(replace(request, fork_of=first))
                )
                streams.append((Collector(request, self.tokenizer, self._loaded.rule), tokens))
                first = tokens.sequence if first is None else first
            await asyncio.gather(*(_collect(collector, tokens) for collector, tokens in streams))
        return joined([collector.output() for collector, _ in streams])


async def _collect(collector: Collector, tokens: TokenStream) -> None:
    """Read a stream to its end. Of several each is read by its own: one that nobody reads is held."""
    async for output in tokens:
        collector.add(output)


def _copied(prompt: Prompt | Conversation) -> Prompt | Conversation:
    """What the caller does to his own afterwards has no effect: a stream encodes it later."""
    if isinstance(prompt, str):
        return prompt
    return deepcopy(prompt) if is_conversation(prompt) else as_token_ids(cast(Sequence[int], prompt))


async def _encoded(what: object, encode: Callable[[], T]) -> T:
    """The result of `encode`. Only a short text is encoded in the loop, where it holds everybody else up."""
    if isinstance(what, str) and len(what) <= MAX_ENCODED_IN_LOOP:
        return encode()
    return await asyncio.to_thread(encode)
