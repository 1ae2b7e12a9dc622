"""Servers with OpenAI's interface as a target: one for each mode, asked over HTTP like any client asks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any
from warnings import warn

from paceline.bench.base import Answer, Ask, Mode, Report, Session, Target
from paceline.bench.targets.counters import Reading, counts_between, read_counters
from paceline.bench.targets.endpoint_client import (
    EndpointClient,
    check_client,
    checked_address,
    endpoint_client,
    key_headers,
)
from paceline.bench.targets.endpoint_facts import EndpointFacts, learn
from paceline.bench.targets.json_fields import EndpointError
from paceline.bench.targets.openai_request import PATHS, Api, request_body, without_prefix_cache
from paceline.bench.targets.openai_stream import AnswerReader
from paceline.controller import OFF
from paceline.errors import PacelineError, PacelineWarning, UsageError

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

ENDPOINT = "endpoint"
TIMEOUT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """How to ask. `model`: None takes the first that each server lists. `api`: "completions" for a model that knows no
    conversations. `key_variable`: the environment variable that holds the API key, sent to every server. `timeout`:
    seconds that an answer may take. `prefix_caching`: whether a server may reuse what earlier prompts left in its
    cache; vLLM, SGLang and llama.cpp can be asked not to, others have to be started so. `extra_body`: JSON that goes
    into every request and replaces what has its names, as `{"chat_template_kwargs": {"enable_thinking": false}}`.
    `clock`: in seconds. `transport`: in place of the network, for tests.
    """

    model: str | None = None
    api: Api = "chat"
    key_variable: str | None = None
    timeout: float = TIMEOUT_SECONDS
    prefix_caching: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    clock: Callable[[], float] = perf_counter
    transport: "AsyncBaseTransport | None" = None


def endpoint_modes(addresses: Mapping[str, str]) -> tuple[Mode, ...]:
    """A mode for each name of an endpoint. How a server speculates is its own affair: but for "off" the proposer is
    called "endpoint"."""
    return tuple(Mode(name) if name == OFF else Mode(name, proposer=ENDPOINT) for name in addresses)


class EndpointTarget(Target):
    """Made by `connect`. Times of an answer run from the moment before its request is sent, connecting included where
    the server closed the last connection, to the arrival of each event."""

    def __init__(self, facts: Mapping[str, EndpointFacts], options: EndpointOptions) -> None:
        self._facts = facts
        self._options = options

    @classmethod
    async def connect(cls, addresses: Mapping[str, str], options: EndpointOptions | None = None) -> "EndpointTarget":
        """Learn what stands at each mode's address, with or without `/v1`. "off" is the one to compare with.

        Raises UsageError for an address or an option out of range, EndpointError for a server that cannot be reached
        or tells no model, PacelineError where the extra `bench` is not installed.
        """
        check_client()
        options = options or EndpointOptions()
        if options.api not in PATHS:
            raise UsageError(f"the interface is {options.api!r}; expected {' or '.join(PATHS)}")
        if not options.timeout > 0:
            raise UsageError(f"timeout is {options.timeout!r}; expected seconds above 0")
        headers, facts = key_headers(options.key_variable), dict[str, EndpointFacts]()
        for mode, given in addresses.items():
            address = checked_address(mode, given)
            async with endpoint_client(address, headers, options.transport) as client:
                facts[mode] = await learn(client, address, options.model)
        return cls(facts, options)

    @asynccontextmanager
    async def session(self, mode: Mode) -> AsyncIterator[Session]:
        if mode.name not in self._facts:
            raise UsageError(f"no endpoint was given for the mode {mode.name!r}; there are {', '.join(self._facts)}")
        facts, options = self._facts[mode.name], self._options
        async with endpoint_client(facts.address, key_headers(options.key_variable), options.transport) as client:
            yield EndpointSession(client, facts, options, await _reading(client))

    def describe(self) -> Mapping[str, Any]:
        return {
            "kind": ENDPOINT,
            "api": self._options.api,
            "extra_body": dict(self._options.extra_body),
            "modes": {mode: self._described(facts) for mode, facts in self._facts.items()},
        }

    def _described(self, facts: EndpointFacts) -> dict[str, Any]:
        is_off = not self._options.prefix_caching and bool(without_prefix_cache(facts.kind))
        return {**facts.described, "prefix_caching": "asked to be off" if is_off else "the server's"}

    def memory(self) -> Mapping[str, Mapping[str, int]]:
        """Nothing: no server tells it."""
        return {}


class EndpointSession(Session):
    def __init__(
        self, client: EndpointClient, facts: EndpointFacts, options: EndpointOptions, before: Reading | None
    ) -> None:
        self._client = client
        self._facts = facts
        self._options = options
        self._before = before
        self._num_answers = 0
        self._num_tokens = 0
        self._is_told_by_answer = False

    async def answer(self, ask: Ask) -> Answer:
        reader = AnswerReader(is_counted=self._before is not None)
        try:
            async with asyncio.timeout(self._options.timeout):
                answer = await self._read(ask, reader)
        except TimeoutError:
            answer = reader.failed(f"the answer took longer than {self._options.timeout:g} s")
        except PacelineError as error:
            answer = reader.failed(str(error))
        self._num_answers += bool(answer.chunks)
        self._num_tokens += answer.num_tokens
        self._is_told_by_answer |= answer.counts is not None
        return answer

    async def report(self) -> Report:
        """Speculation from the server's counters, unless it tells it with each answer. Warns where they cannot be
        had, or the server was restarted."""
        if self._before is None or self._is_told_by_answer:
            return Report()
        after = await _reading(self._client)
        if after is None or after.dialect != self._before.dialect:
            return Report()
        try:
            return Report(counts=counts_between(self._before, after, self._num_answers, self._num_tokens))
        except EndpointError as error:
            _warn(error)
            return Report()

    async def _read(self, ask: Ask, reader: AnswerReader) -> Answer:
        """To the end of the stream, so that its connection can serve again."""
        facts, options = self._facts, self._options
        fresh = {} if options.prefix_caching else without_prefix_cache(facts.kind)
        body = request_body(ask, options.api, facts.model, facts.kind, {**fresh, **options.extra_body})
        began = options.clock()
        async with aclosing(self._client.events(PATHS[options.api], body)) as events:
            async for data in events:
                reader.add(options.clock() - began, data)
        return reader.answer()


async def _reading(client: EndpointClient) -> Reading | None:
    """None where a server shows no counters, with a warning where it ought to: a run goes on without them."""
    try:
        page = await client.page("/metrics")
        return None if page is None else read_counters(page.text)
    except EndpointError as error:
        _warn(error)
        return None


def _warn(error: EndpointError) -> None:
    warn(f"speculation of a block is not told: {error}", PacelineWarning, stacklevel=2)
