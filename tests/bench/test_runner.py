"""How a plan is carried out, against a target whose every answer is known."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from paceline import SamplingParams
from paceline.bench.base import Answer, Ask, Block, Chunk, Item, Load, Message, Mode, Report, Session, Target, Workload
from paceline.bench.machine import EnergyMeter
from paceline.bench.runner import WARM_UP_TOKENS, Asking, Runner
from paceline.bench.schedule import Asked, plan_blocks

MODES = (Mode("off"), Mode("ngram", "ngram", 4))


class FakeSession(Session):
    def __init__(self, target: "FakeTarget", mode: Mode) -> None:
        self._target = target
        self._mode = mode

    async def answer(self, ask: Ask) -> Answer:
        target = self._target
        target.asks.append((self._mode.name, ask))
        target.num_open += 1
        target.most_open = max(target.most_open, target.num_open)
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if "fail" in ask.messages[-1].content:
                return Answer(3, 0, (), "", error="it failed")
            target.now += 1.0
            return Answer(3, 2, (Chunk(0.25, 1), Chunk(1.0, 1)), f"{self._mode.name} says", (1, 2))
        finally:
            target.num_open -= 1

    async def report(self) -> Report:
        return Report()


class FakeTarget(Target):
    """Answers take a second of its own clock. Remembers what it was asked, and how much of it at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asks: list[tuple[str, Ask]] = []
        self.num_open = self.most_open = self.num_sessions = 0

    @asynccontextmanager
    async def session(self, mode: Mode) -> AsyncIterator[Session]:
        self.num_sessions += 1
        assert self.num_sessions == 1, "one session at a time"
        try:
            yield FakeSession(self, mode)
        finally:
            self.num_sessions -= 1

    def describe(self) -> Mapping[str, Any]:
        return {}

    def memory(self) -> Mapping[str, Mapping[str, int]]:
        return {}


def run(
    target: FakeTarget, workload: Workload, load: Load, params: SamplingParams | None = None, **options: Any
) -> list[Block]:
    asking = Asking(params if params is not None else SamplingParams(max_tokens=9), seed=5)
    runner = Runner(target, asking, EnergyMeter(), lambda: target.now)
    plans = plan_blocks(workload, load, MODES, rounds=options.pop("rounds", 1), seed=1)

    async def collect() -> list[Block]:
        return [block async for block in runner.run(plans, **options)]

    return asyncio.run(collect())


def items(number: int, *turns: str) -> Workload:
    return Workload("made up", tuple(Item(f"item-{i}", "chat", turns or ("hello",)) for i in range(number)))


def test_every_item_is_asked_once_in_every_mode() -> None:
    target = FakeTarget()
    blocks = run(target, items(3), Load(concurrency=1))
    assert sorted((block.index, block.mode) for block in blocks) == [
        (i, m.name) for i in range(3) for m in (MODES[1], MODES[0])
    ]
    assert {(seen.item, block.mode) for block in blocks for seen in block.observations} == {
        (f"item-{i}", mode.name) for i in range(3) for mode in MODES
    }
    assert [block.seconds for block in blocks] == [1.0] * 6
    assert target.most_open == 1


@pytest.mark.parametrize("concurrency", [2, 5])
def test_a_closed_loop_keeps_its_concurrency(concurrency: int) -> None:
    target = FakeTarget()
    blocks = run(target, items(20), Load(concurrency=concurrency))
    assert target.most_open == concurrency
    assert all(len(block.observations) == 2 * concurrency for block in blocks)


def test_turns_follow_the_answers_of_their_own_mode() -> None:
    target = FakeTarget()
    run(target, items(1, "first", "second"), Load(concurrency=1))
    second = {mode: ask.messages for mode, ask in target.asks if len(ask.messages) > 1}
    assert second["off"] == (Message("user", "first"), Message("assistant", "off says"), Message("user", "second"))
    assert second["ngram"][1] == Message("assistant", "ngram says")


def test_behind_a_failed_answer_no_turn_is_asked() -> None:
    target = FakeTarget()
    blocks = run(target, items(1, "fail", "second"), Load(concurrency=1))
    assert [seen.answer.error for block in blocks for seen in block.observations] == ["it failed"] * 2


def test_all_modes_draw_with_the_same_noise_and_no_two_questions_do() -> None:
    target = FakeTarget()
    run(target, items(4, "a", "b"), Load(concurrency=1), SamplingParams(max_tokens=9, temperature=1.0), rounds=2)
    seeds = {
        mode.name: sorted(ask.params.seed or 0 for name, ask in target.asks if name == mode.name) for mode in MODES
    }
    assert seeds["off"] == seeds["ngram"]
    assert len(set(seeds["off"])) == 16
    assert max(seeds["off"]) < 2**31, "servers refuse or cut what does not fit"


def test_an_item_can_lower_the_limit_and_not_raise_it() -> None:
    asking = Asking(SamplingParams(max_tokens=50), 0)
    for own, most in ((10, 10), (90, 50), (None, 50)):
        asked = Asked(Item("x", "chat", ("hello",), max_tokens=own), 0)
        assert asking.ask(asked, 0, ()).params.max_tokens == most


def test_the_prediction_belongs_to_the_last_turn() -> None:
    asked = Asked(Item("x", "edit", ("first", "second"), prediction="old text"), 0)
    asking = Asking(SamplingParams(), 0)
    assert [asking.ask(asked, turn, ()).prediction for turn in (0, 1)] == [None, "old text"]


def test_no_block_is_begun_behind_the_duration_and_modes_stay_paired() -> None:
    blocks = run(FakeTarget(), items(10), Load(concurrency=1), seconds=3.0)
    assert len(blocks) == 4  # two plans of two modes, a second each: the third would begin at 4
    assert {block.index for block in blocks} == {0, 1}


def test_warming_up_is_short_and_in_every_mode() -> None:
    target = FakeTarget()
    runner = Runner(target, Asking(SamplingParams(max_tokens=500), 0), EnergyMeter(), lambda: target.now)
    answers = asyncio.run(runner.warm_up(Asked(items(1, "a", "b").items[0], 0), MODES))
    assert len(answers) == 2
    assert [(mode, ask.params.max_tokens) for mode, ask in target.asks] == [
        ("off", WARM_UP_TOKENS),
        ("ngram", WARM_UP_TOKENS),
    ]


def test_to_cancel_leaves_nothing_running() -> None:
    async def main() -> int:
        target = FakeTarget()
        runner = Runner(target, Asking(SamplingParams(), 0), EnergyMeter(), lambda: target.now)
        plans = plan_blocks(items(50), Load(concurrency=4), MODES, rounds=1, seed=0)

        async def collect() -> None:
            async for _ in runner.run(plans):
                pass

        task = asyncio.create_task(collect())
        while not target.num_open:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert target.num_sessions == 0
        return target.num_open

    assert asyncio.run(main()) == 0
