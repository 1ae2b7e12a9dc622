"""A benchmark from its settings to its result: warming up, every block, and the figures of what there is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from itertools import count
from time import perf_counter
from typing import Any

from paceline.bench.advice import advise
from paceline.bench.base import Ask, Block, Item, Load, Message, Mode, Observation, Target, Workload
from paceline.bench.figures import block_sums, summarise
from paceline.bench.identity import find_differences
from paceline.bench.machine import EnergyMeter, peak_rss_bytes
from paceline.bench.provenance import plain_params
from paceline.bench.recordings import Recording, Recordings, most_tokens
from paceline.bench.result import ReplayRun, Result, Run
from paceline.bench.runner import Asking, Runner
from paceline.bench.schedule import Asked, BlockPlan, plan_blocks
from paceline.bench.settings import Settings
from paceline.errors import PacelineError

Show = Callable[["Experiment", int, int], None]
"""Told, behind every block, how many are done and how many there are."""


@dataclass(frozen=True, slots=True)
class Judging:
    """What figures are set against: latency targets in milliseconds, a price, and T(n) of the target behind
    `forward_context` cached tokens."""

    slo: Mapping[str, float] = field(default_factory=dict)
    price_per_hour: float | None = None
    forward_ms: Mapping[int, float] = field(default_factory=dict)
    floor_ms: float | None = None
    forward_context: int | None = None


class Experiment:
    """What was measured is in `blocks`, whatever ends `run`; `result` is of what there is then. `failure`: what ended
    it early, Ctrl-C too; None where nothing did."""

    def __init__(self, target: Target, workload: Workload, settings: Settings) -> None:
        self.target = target
        self._workload = workload
        self._settings = settings
        self._asking = Asking(settings.params, settings.seed)
        self._peak_rss: int | None = None
        self.is_complete = False
        self.failure: BaseException | None = None
        self.blocks: list[Block] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Whatever ends its block early, Ctrl-C too, becomes the `failure`, so that what was measured can be told
        first. It is raised where nothing was measured yet."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            if not self.blocks:
                raise
            self.failure = self.failure or error
            self.is_complete = False

    async def run(self, show: Show) -> None:
        """Raises PacelineError where the first answers, which only warm up, fail in all modes: so would all others."""
        settings = self._settings
        runner = Runner(self.target, self._asking, EnergyMeter())
        await self._warm_up(runner)
        total, began = self._num_blocks(), perf_counter()
        show(self, 0, total)
        indices = count()
        for load in settings.loads:
            plans = self._plans(load, indices, settings.rounds)
            async for block in runner.run(plans, seconds=settings.seconds):
                self.blocks.append(block)
                self._peak_rss = peak_rss_bytes()
                show(self, len(self.blocks), self._expected(total, perf_counter() - began))
        self.is_complete = True
        if settings.seconds is not None:
            show(self, len(self.blocks), len(self.blocks))

    def longest(self) -> Ask | None:
        """The first turn of the item that has the most text, of those that were answered; None where none was."""
        answered = {seen.item for block in self.blocks for seen in block.observations if seen.answer.error is None}
        items = [item for item in self._workload.items if item.id in answered]
        if not items:
            return None
        item = max(items, key=_first_length)
        return self._asking.ask(Asked(item, 0), 0, (*item.history, Message("user", item.turns[0])))

    def runs(self, judging: Judging) -> list[Run]:
        return summarise(
            self.blocks,
            modes=self._settings.modes,
            slo=judging.slo,
            price_per_hour=judging.price_per_hour,
            forward_ms=judging.forward_ms,
            memory=self.target.memory(),
            peak_rss=self._peak_rss,
        )

    def result(
        self,
        judging: Judging,
        provenance: Mapping[str, Any],
        fingerprint: Mapping[str, Any],
        replay: Sequence[ReplayRun] = (),
    ) -> Result:
        runs = self.runs(judging)
        return Result(
            provenance={**provenance, "target": dict(self.target.describe())},
            fingerprint=fingerprint,
            settings={
                **as_json(self._settings, self._workload),
                "slo": dict(judging.slo),
                "price_per_hour": judging.price_per_hour,
            },
            runs=tuple(runs),
            forward_ms={str(n): time for n, time in judging.forward_ms.items()},
            floor_ms=judging.floor_ms,
            differences=tuple(find_differences(self.blocks)),
            replay=tuple(replay),
            advice=tuple(advise(runs, self._settings.modes)),
            blocks=tuple(map(block_sums, self.blocks)),
            notes=tuple(self._notes(judging)),
            is_complete=self.is_complete,
        )

    async def _warm_up(self, runner: Runner) -> None:
        """By the shortest item: where not even that one can be answered, none can."""
        item = min(self._workload.items, key=_first_length)
        answers = await runner.warm_up(Asked(item, 0), self._settings.modes)
        errors = [answer.error for answer in answers if answer.error is not None]
        if len(errors) == len(answers):
            raise PacelineError(f"nothing is answered in any mode: {errors[0]}")

    def _plans(self, load: Load, indices: Iterator[int], rounds: int | None) -> Iterator[BlockPlan]:
        settings = self._settings
        return plan_blocks(
            self._workload,
            load,
            settings.modes,
            rounds=rounds,
            seed=settings.seed,
            follows_trace=settings.follows_trace,
            indices=indices,
        )

    def _num_blocks(self) -> int:
        """Of rounds without end the first alone: nobody knows how many there will be."""
        settings = self._settings
        plans = [plan for load in settings.loads for plan in self._plans(load, count(), settings.rounds or 1)]
        return len(plans) * len(settings.modes)

    def _expected(self, total: int, elapsed: float) -> int:
        """How many blocks there will be: `total`, or what the duration leaves time for, always one more at least."""
        settings, done = self._settings, len(self.blocks)
        if settings.seconds is None:
            return total
        in_time = done + max(1, round(done * (settings.seconds * len(settings.loads) / elapsed - 1)))
        return in_time if settings.rounds is None else max(done, min(total, in_time))

    def recordings(
        self, judging: Judging, fingerprint: Mapping[str, Any], max_length: int, max_draft_tokens: int
    ) -> Recordings:
        """The whole answers of the first mode, each question's first one, or where something is drawn each of its
        repeats; "off" goes before others. `max_length` and `max_draft_tokens`: of the engine, see `Recordings`."""
        modes = sorted(self._settings.modes, key=lambda mode: not mode.is_off)
        items = {item.id: item for item in self._workload.items}
        is_drawn = self._settings.params.temperature > 0
        found = dict[tuple[str, int, int], Recording]()
        for block in self.blocks:
            if block.mode == modes[0].name:
                for seen in block.observations:
                    recording = self._recording(items[seen.item], seen, max_length)
                    if recording is not None:
                        found.setdefault((seen.item, seen.turn, seen.repeat if is_drawn else 0), recording)
        return Recordings(fingerprint, max_draft_tokens, tuple(found.values()), judging.forward_ms)

    def _recording(self, item: Item, seen: Observation, max_length: int) -> Recording | None:
        """None for an answer that failed, or of which the tokens are not known."""
        answer = seen.answer
        if answer.error is not None or not answer.token_ids or answer.prompt_ids is None:
            return None
        params = self._asking.ask(Asked(item, seen.repeat), seen.turn, ()).params
        most = most_tokens(params, len(answer.prompt_ids), max_length)
        return Recording(item.id, seen.turn, item.task_class, answer.prompt_ids, answer.token_ids, most)

    def _notes(self, judging: Judging) -> list[str]:
        settings, notes = self._settings, list[str]()
        if settings.prefix_caching:
            notes.append("Conversations of one block and mode reused equal beginnings of their prompts.")
        else:
            notes.append("Prefix reuse was off: every prompt was read whole.")
        if judging.forward_context is not None:
            notes.append(
                f"Ceilings and predictions rest on forwards behind {judging.forward_context} cached tokens; longer "
                "contexts cost more."
            )
        errors = [seen.answer.error for block in self.blocks for seen in block.observations if seen.answer.error]
        if errors:
            notes.append(f"{len(errors)} answers failed and are in no figure; the first: {errors[0]}")
        if isinstance(self.failure, Exception):
            notes.append(f"The measurement broke off: {self.failure}")
        if self._workload.problems:
            first = self._workload.problems[0]
            notes.append(
                f"{len(self._workload.problems)} lines of the workload hold no item and were left out; the first, "
                f"line {first.line}: {first.message}"
            )
        return notes


def as_json(settings: Settings, workload: Workload) -> dict[str, Any]:
    """Everything that was asked for, as plain values."""
    return {
        "workload": workload.name,
        "num_items": len(workload.items),
        "modes": [_plain(mode) for mode in settings.modes],
        "loads": [load.label for load in settings.loads],
        "burstiness": next((load.burstiness for load in settings.loads if load.request_rate is not None), None),
        "params": plain_params(settings.params),
        "rule": settings.rule,
        "task_classes": list(settings.task_classes),
        "num_prompts": settings.num_prompts,
        "rounds": settings.rounds,
        "seconds": settings.seconds,
        "follows_trace": settings.follows_trace,
        "seed": settings.seed,
        "prefix_caching": settings.prefix_caching,
    }


def _first_length(item: Item) -> int:
    """Characters that stand before the first answer."""
    return len(item.turns[0]) + sum([len(message.content) for message in item.history])


def _plain(mode: Mode) -> dict[str, Any]:
    return {each.name: getattr(mode, each.name) for each in fields(mode)}
