"""One `Run` for each task class, mode and load."""

from collections.abc import Iterable, Mapping, Sequence

from paceline.bench.base import ALL, Answer, Block, Load, Mode
from paceline.bench.figures.acceptance import Acceptance, total_counts
from paceline.bench.figures.ceiling import speculation_ceiling
from paceline.bench.figures.latency import chunk_gap_ms, e2e_ms, meets_targets, tpot, tpot_ms, ttft_ms
from paceline.bench.figures.speedup import Pairs, macro_speedup, pair_blocks, request_speedup, speedup, without_loops
from paceline.bench.figures.sums import block_sums, good_answers, num_errors, timed
from paceline.bench.identity import identical_fraction
from paceline.bench.loops import ends_in_loop
from paceline.bench.result import BlockSums, Run
from paceline.bench.statistics import Estimate, mean, ratio
from paceline.controller import OFF


def summarise(
    blocks: Sequence[Block],
    *,
    modes: Sequence[Mode],
    slo: Mapping[str, float] | None = None,
    price_per_hour: float | None = None,
    forward_ms: Mapping[int, float] | None = None,
    memory: Mapping[str, Mapping[str, int]] | None = None,
    peak_rss: int | None = None,
) -> list[Run]:
    """The figures of every task class, in the order in which classes first occur, and of "all", for each load and mode.

    A class, load and mode of which there is no block, as after an interruption, has no `Run`. `slo`: milliseconds by
    `latency.SLO_NAMES`. `forward_ms`: T(n). `memory`: as `Target.memory` tells it. `peak_rss`: bytes, of the process.
    """
    runs = []
    for task_class in (*dict.fromkeys(block.task_class for block in blocks), ALL):
        of_class = [block for block in blocks if task_class in (ALL, block.task_class)]
        for load in dict.fromkeys(block.load for block in of_class):
            of_load = [block for block in of_class if block.load == load]
            ceiling = speculation_ceiling(forward_ms or {}, load.concurrency)
            for mode in modes:
                if any(block.mode == mode.name for block in of_load):
                    cell = _Cell(task_class, load, mode.name, of_load)
                    taken = dict((memory or {}).get(mode.name, {}))
                    if peak_rss is not None:
                        taken["peak_rss"] = peak_rss
                    runs.append(cell.run(slo or {}, price_per_hour, ceiling, taken))
    return runs


class _Cell:
    """A task class, load and mode. `of_load`: the blocks of all modes."""

    def __init__(self, task_class: str, load: Load, mode: str, of_load: Sequence[Block]) -> None:
        self.task_class, self.load, self.mode = task_class, load, mode
        self.of_load = of_load
        self.blocks = [block for block in of_load if block.mode == mode]
        self.answers = good_answers(self.blocks)
        self.pairs: Pairs = [] if mode == OFF else pair_blocks(map(block_sums, self.blocks), self._plain())

    def _plain(self) -> Iterable[BlockSums]:
        return (block_sums(block) for block in self.of_load if block.mode == OFF)

    def run(
        self, slo: Mapping[str, float], price: float | None, ceiling: float | None, memory: Mapping[str, int]
    ) -> Run:
        seen = timed(self.answers)
        seconds = sum(block.seconds for block in self.blocks)
        num_tokens = sum(answer.num_tokens for answer in self.answers)
        rate = ratio(num_tokens, seconds)
        decoding, whole = speedup(self.pairs), request_speedup(self.pairs)
        loopless = speedup(without_loops(self.pairs))
        acceptance = Acceptance.of(total_counts(self.blocks))
        return Run(
            task_class=self.task_class,
            mode=self.mode,
            concurrency=self.load.concurrency,
            request_rate=self.load.request_rate,
            num_blocks=len(self.blocks),
            num_answers=len(self.answers),
            num_errors=num_errors(self.blocks),
            num_output_tokens=num_tokens,
            output_tokens_per_second=rate,
            macro_tokens_per_second=_macro_rate(seen),
            speedup=decoding.value if decoding else None,
            speedup_ci=decoding.interval if decoding else None,
            verdict=None if self.mode == OFF else verdict(decoding),
            request_speedup=whole.value if whole else None,
            request_speedup_ci=whole.interval if whole else None,
            macro_speedup=macro_speedup(self.pairs),
            mean_acceptance_length=acceptance.mean_acceptance_length,
            draft_acceptance_rate=acceptance.draft_acceptance_rate,
            acceptance_by_position=acceptance.acceptance_by_position,
            num_draft_tokens_chosen=acceptance.num_draft_tokens_chosen,
            identical_fraction=identical_fraction(self.of_load, self.mode),
            ttft_ms=ttft_ms(seen),
            tpot_ms=tpot_ms(seen),
            chunk_gap_ms=chunk_gap_ms(seen),
            e2e_ms=e2e_ms(seen),
            goodput=ratio(sum(meets_targets(answer, slo) for answer in self.answers), seconds) if slo else None,
            time_share=_time_share(self.blocks),
            memory_bytes=memory,
            ceiling=ceiling,
            looping_fraction=mean([float(ends_in_loop(answer)) for answer in self.answers]),
            speedup_without_loops=loopless.value if loopless else None,
            energy_joules_per_token=_energy_per_token(self.blocks),
            cost_per_million_tokens=price / 3600 / rate * 1e6 if price is not None and rate else None,
            speedup_without_loops_ci=loopless.interval if loopless else None,
            mean_acceptance_length_without_loops=self._acceptance_length_without_loops(),
        )

    def _acceptance_length_without_loops(self) -> float | None:
        """Of this mode's blocks alone: what "off" answered does not matter to it."""
        blocks = [block for block in self.blocks if not any(map(ends_in_loop, good_answers([block])))]
        return Acceptance.of(total_counts(blocks)).mean_acceptance_length


def verdict(estimate: Estimate | None) -> str:
    side = estimate.side if estimate else 0
    return {1: "faster", -1: "slower", 0: "undecided"}[side]


def _macro_rate(answers: Iterable[Answer]) -> float | None:
    return mean([1 / seconds for answer in answers if (seconds := tpot(answer))])


def _time_share(blocks: Iterable[Block]) -> dict[str, float]:
    """Empty where the target tells no times of steps."""
    times = [block.step_time for block in blocks if block.step_time is not None]
    sums = {
        "draft": sum(time.draft_seconds for time in times),
        "verify": sum(time.verify_seconds for time in times),
        "host": sum(time.host_seconds for time in times),
    }
    total = sum(sums.values())
    return {part: seconds / total for part, seconds in sums.items()} if total > 0 else {}


def _energy_per_token(blocks: Iterable[Block]) -> float | None:
    """Of the blocks for which the machine told it."""
    told = [block for block in blocks if block.energy_joules is not None]
    joules = sum(block.energy_joules or 0.0 for block in told)
    return ratio(joules, sum(answer.num_tokens for answer in good_answers(told)))
