"""This package's own engine as a target: every mode on the same loaded weights, one engine after the other."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

from paceline.api.collector import Collector
from paceline.api.inputs import ChatOptions
from paceline.api.loading import LoadedModel, ModelOptions, ModelParts
from paceline.api.speculation import Speculating, Speculation
from paceline.api.terms import Terms
from paceline.bench.base import Answer, Ask, Chunk, Counts, Mode, Report, Session, StepTime, Target
from paceline.bench.machine import deep_size, model_memory
from paceline.controller import OFF
from paceline.engine import AsyncEngine, StepOutput
from paceline.errors import PacelineError
from paceline.proposers import Proposer
from paceline.telemetry import Reason, SpeculationStats, StepRecord


class LocalTarget(Target):
    """`rule` judges the drafts of all modes. Each session has an engine of its own, so that nothing that one mode has
    left in the cache serves another; `options.prefix_caching` is about what is reused within a session.
    """

    def __init__(self, parts: ModelParts, options: ModelOptions, rule: str, description: Mapping[str, Any]) -> None:
        self._parts = parts
        self._options = options
        self._rule = rule
        self._description = description
        self._held: dict[str, dict[str, int]] = {}  # by mode

    def describe(self) -> Mapping[str, Any]:
        return self._description

    def memory(self) -> Mapping[str, Mapping[str, int]]:
        """Of proposers what `measure_memory` found; without it nothing is known of them."""
        shared = model_memory(self._parts.runtime)
        return {mode: {**shared, **held} for mode, held in self._held.items()}

    @asynccontextmanager
    async def session(self, mode: Mode) -> AsyncIterator[Session]:
        times = _StepTimes()
        async with self._open(mode, times.add) as session:
            yield _LocalSession(*session, times)

    async def measure_memory(self, modes: Iterable[Mode], ask: Ask) -> None:
        """Answer once more with every proposer, slowly: every few steps it is looked at. How many tokens it drafts
        makes no difference to what it keeps."""
        most = dict[str, int]()
        for mode in modes:
            if mode.proposer not in most:
                most[mode.proposer] = await self._most_held(mode, ask)
            self._held[mode.name] = {"proposer": most[mode.proposer]}

    async def _most_held(self, mode: Mode, ask: Ask) -> int:
        speculating = self._speculation(mode).create()
        held = _Held(speculating[1])
        async with self._open(mode, held.look, speculating) as session:
            await _LocalSession(*session, _StepTimes()).answer(ask)
        return held.most

    @asynccontextmanager
    async def _open(
        self, mode: Mode, records: Callable[[StepRecord], None], speculating: Speculating | None = None
    ) -> AsyncIterator[tuple[LoadedModel, AsyncEngine]]:
        self._held.setdefault(mode.name, {"proposer": 0} if mode.is_off else {})
        speculation = self._speculation(mode)
        options = replace(self._options, speculation=speculation)
        loaded = self._parts.engine(options, speculating or speculation.create(), records)
        async with AsyncEngine(loaded.engine) as engine:
            yield loaded, engine

    def _speculation(self, mode: Mode) -> Speculation:
        if mode.is_off:
            return Speculation(proposer=OFF)
        return Speculation(proposer=mode.proposer, num_speculative_tokens=mode.num_speculative_tokens, rule=self._rule)


class _LocalSession(Session):
    def __init__(self, loaded: LoadedModel, engine: AsyncEngine, times: "_StepTimes") -> None:
        self._loaded = loaded
        self._engine = engine
        self._times = times

    async def answer(self, ask: Ask) -> Answer:
        began = perf_counter()
        try:
            ids = await asyncio.to_thread(self._encode, ask)  # a long prompt must not hold other streams up
            return await self._answer(ask, ids, began)
        except PacelineError as error:
            return Answer(0, 0, (), "", finish_reason="error", error=str(error))

    async def _answer(self, ask: Ask, ids: list[int], began: float) -> Answer:
        request = Terms.of(ask.params, "", 0).only_choice(ids)
        collector, tally, chunks = Collector(request, self._loaded.tokenizer, self._loaded.rule), _Tally(), []
        async with await self._engine.add_request(request) as tokens:
            async for step in tokens:
                now = perf_counter() - began
                collector.add(step)
                tally.add(step)
                if step.tokens:
                    chunks.append(Chunk(now, len(step.tokens)))
        output = collector.output()
        return Answer(
            prompt_tokens=len(ids),
            num_tokens=len(output.token_ids),
            chunks=tuple(chunks),
            text=output.text,
            token_ids=output.token_ids,
            finish_reason=output.finish_reason,
            counts=tally.counts(),
            error=output.error or (None if chunks else f"no token came: {output.finish_reason}"),
            prompt_ids=tuple(ids),
        )

    async def report(self) -> Report:
        return Report(step_time=self._times.sums())

    def _encode(self, ask: Ask) -> list[int]:
        """A model that knows no conversations continues the last message."""
        encoder = self._loaded.encoder
        if not encoder.has_template:
            return encoder.prompt("\n\n".join(message.content for message in ask.messages))
        messages = [{"role": message.role, "content": message.content} for message in ask.messages]
        return encoder.conversation(messages, ChatOptions())


class _StepTimes:
    """Of the steps in which something decoded: prefill is not what speculation is about."""

    def __init__(self) -> None:
        self._draft = self._verify = self._host = 0

    def add(self, record: StepRecord) -> None:
        if record.num_decode_rows:
            self._draft += record.draft_ns
            self._verify += record.verify_ns
            self._host += record.host_ns

    def sums(self) -> StepTime:
        return StepTime(self._draft / 1e9, self._verify / 1e9, self._host / 1e9)


class _Tally:
    """Speculation of one answer, from what its steps yielded."""

    def __init__(self) -> None:
        self._stats = SpeculationStats()
        self._drafted = Counter[int]()

    def add(self, output: StepOutput) -> None:
        step = output.step
        if step is None:
            return
        self._stats.add_sequence(step)
        if step.reason is not Reason.PREFILL:
            self._drafted[step.drafted] += 1

    def counts(self) -> Counts:
        return Counts.of(self._stats, self._drafted)


class _Held:
    """The most that proposers held, looked at every few steps in which something decodes, and oftener among the first:
    answers can be short, and before them a long prompt is read in many steps."""

    EVERY = 16

    def __init__(self, proposers: list[Proposer]) -> None:
        self._proposers = proposers
        self._num_steps = 0
        self.most = 0

    def look(self, record: StepRecord) -> None:
        if not record.num_decode_rows:
            return
        num = self._num_steps
        if num % self.EVERY == 0 or num.bit_count() == 1:
            self.most = max(self.most, sum(map(deep_size, self._proposers)))
        self._num_steps += 1
