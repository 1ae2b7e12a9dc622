"""Runs a plan: every block under every mode, one after the other, and yields what was observed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from time import perf_counter
from typing import Any

from paceline.bench.base import Answer, Ask, Block, Message, Mode, Observation, Session, Target
from paceline.bench.machine import EnergyMeter
from paceline.bench.schedule import Asked, BlockPlan
from paceline.sampling_params import SamplingParams

WARM_UP_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Asking:
    """How answers are asked for: by `params`, but for the seed, which is a function of `seed` and of the question, so
    that all modes draw with the same noise. An item's own `max_tokens` can only lower the params'."""

    params: SamplingParams
    seed: int

    def ask(self, asked: Asked, turn: int, messages: tuple[Message, ...]) -> Ask:
        item = asked.item
        limits = [limit for limit in (item.max_tokens, self.params.max_tokens) if limit is not None]
        params = replace(
            self.params,
            max_tokens=min(limits) if limits else None,
            seed=self._seed(asked, turn) if self.params.temperature else None,
        )
        is_last = turn == len(item.turns) - 1
        return Ask(messages, params, item.prediction if is_last else None)

    def short(self) -> "Asking":
        most = WARM_UP_TOKENS if self.params.max_tokens is None else min(WARM_UP_TOKENS, self.params.max_tokens)
        return Asking(replace(self.params, max_tokens=most, min_tokens=0), self.seed)

    def _seed(self, asked: Asked, turn: int) -> int:
        """31 bits: servers keep seeds in 32 or in 64 with a sign, and refuse or cut what is longer."""
        name = f"{self.seed}/{asked.item.id}/{asked.repeat}/{turn}"
        return int.from_bytes(sha256(name.encode()).digest()[:4], "little") >> 1


class Runner:
    """`clock` tells seconds, as `time.perf_counter` does."""

    def __init__(
        self, target: Target, asking: Asking, meter: EnergyMeter, clock: Callable[[], float] = perf_counter
    ) -> None:
        self._target = target
        self._asking = asking
        self._meter = meter
        self._clock = clock

    async def warm_up(self, asked: Asked, modes: Iterable[Mode]) -> list[Answer]:
        """A short answer to the first turn under every mode, which no figure counts: code, caches and clocks are warm
        then."""
        first = replace(asked, item=replace(asked.item, turns=asked.item.turns[:1]))
        answers = list[Answer]()
        for mode in modes:
            async with self._target.session(mode) as session:
                answers += [seen.answer for seen in await self._converse(session, first, self._asking.short())]
        return answers

    async def run(self, plans: Iterable[BlockPlan], *, seconds: float | None = None) -> AsyncIterator[Block]:
        """Every plan's blocks, one for each mode, in the order in which they were measured.

        `seconds`: begin no further plan after so long; what is begun is finished under all modes. To cancel it
        withdraws what is under way.
        """
        end = None if seconds is None else self._clock() + seconds
        for plan in plans:
            if end is not None and self._clock() >= end:
                return
            for mode in plan.modes:
                yield await self._block(plan, mode)

    async def _block(self, plan: BlockPlan, mode: Mode) -> Block:
        async with self._target.session(mode) as session:
            energy, began = self._meter.read(), self._clock()
            if plan.load.concurrency is not None:
                observations = await self._closed(session, plan.asked, plan.load.concurrency)
            else:
                observations = await self._open(session, plan.asked)
            seconds, spent = self._clock() - began, self._meter.joules(energy, self._meter.read())
            report = await session.report()
        return Block(
            index=plan.index,
            task_class=plan.task_class,
            mode=mode.name,
            load=plan.load,
            seconds=seconds,
            observations=tuple(observations),
            step_time=report.step_time,
            energy_joules=spent,
            counts=report.counts,
        )

    async def _closed(self, session: Session, asked: Iterable[Asked], concurrency: int) -> list[Observation]:
        """`concurrency` conversations at a time, the next one when one has ended."""
        waiting, observations = iter(asked), list[Observation]()

        async def work() -> None:
            for each in waiting:
                observations.extend(await self._converse(session, each, self._asking))

        await _together(work() for _ in range(concurrency))
        return observations

    async def _open(self, session: Session, asked: Iterable[Asked]) -> list[Observation]:
        """Conversations begin at their arrivals, whether or not answers keep up."""
        observations = list[Observation]()

        async def work(each: Asked) -> None:
            await asyncio.sleep(each.arrival)
            observations.extend(await self._converse(session, each, self._asking))

        await _together(work(each) for each in asked)
        return observations

    async def _converse(self, session: Session, asked: Asked, asking: Asking) -> list[Observation]:
        """All turns; those behind an answer that failed are not asked."""
        messages, observations = asked.item.history, list[Observation]()
        for turn, text in enumerate(asked.item.turns):
            messages = (*messages, Message("user", text))
            answer = await session.answer(asking.ask(asked, turn, messages))
            observations.append(Observation(asked.item.id, turn, asked.repeat, answer))
            if answer.error is not None:
                break
            messages = (*messages, Message("assistant", answer.text))
        return observations


async def _together(coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Where one fails, or this is cancelled, none is left running."""
    tasks = [asyncio.create_task(each) for each in coroutines]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
