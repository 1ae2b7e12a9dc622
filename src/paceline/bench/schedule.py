"""What is asked when: a workload cut into blocks, and the times of arrivals. Pure; all chance comes from a seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle, islice
from random import Random

from paceline.bench.base import Item, Load, Mode, Workload

MIXED = "mixed"  # the task class of a block that is a whole trace of several
WAVES = 2  # conversations of a block for each that runs at the same time


@dataclass(frozen=True, slots=True)
class Asked:
    """An item at its `repeat`-th time, `arrival` seconds after its block has begun where the loop is open."""

    item: Item
    repeat: int
    arrival: float = 0.0


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """One block, to be asked under every mode in the order of `modes`."""

    index: int
    task_class: str
    load: Load
    asked: tuple[Asked, ...]
    modes: tuple[Mode, ...]


def plan_blocks(
    workload: Workload,
    load: Load,
    modes: Sequence[Mode],
    *,
    rounds: int | None,
    seed: int,
    follows_trace: bool = False,
    indices: Iterator[int] | None = None,
) -> Iterator[BlockPlan]:
    """`rounds` times every item of the workload at least, without end for None; in a round classes take turns.

    A closed loop's block holds one item where one runs at a time, else `WAVES` times the concurrency of one class, so
    that most of it runs at the full concurrency; a class with fewer items is asked again, as another repeat. An open
    loop's block is all items of a class, at arrivals that are the same in all modes. `follows_trace`: it is the whole
    workload, at its own arrivals. `indices`: of blocks, from 0 by default.
    """
    random = Random(f"{seed}/{load.label}")
    indices = indices if indices is not None else count()
    repeats: dict[str, int] = {}
    for _ in range(rounds) if rounds is not None else count():
        for task_class, items in _rounds(workload, load, follows_trace):
            asked = _asked(items, load, repeats, follows_trace, random)
            order = tuple(random.sample(list(modes), len(modes)))
            yield BlockPlan(next(indices), task_class, load, asked, order)


def _rounds(workload: Workload, load: Load, follows_trace: bool) -> Iterator[tuple[str, Sequence[Item]]]:
    """The blocks of one round, classes in turns: what changes slowly about a machine then meets them all."""
    if follows_trace:
        classes = workload.task_classes
        yield classes[0] if len(classes) == 1 else MIXED, workload.items
        return
    by_class = {name: [item for item in workload.items if item.task_class == name] for name in workload.task_classes}
    cuts = {name: list(_cut(items, load)) for name, items in by_class.items()}
    for position in range(max(map(len, cuts.values()), default=0)):
        for name, blocks in cuts.items():
            if position < len(blocks):
                yield name, blocks[position]


def _cut(items: Sequence[Item], load: Load) -> Iterator[Sequence[Item]]:
    if load.concurrency is None:
        yield items
        return
    size = 1 if load.concurrency == 1 else WAVES * load.concurrency
    num_blocks = -(-len(items) // size)
    endless = cycle(items)
    for _ in range(num_blocks):
        yield list(islice(endless, size))


def _asked(
    items: Sequence[Item], load: Load, repeats: dict[str, int], follows_trace: bool, random: Random
) -> tuple[Asked, ...]:
    arrivals = _recorded(items) if follows_trace else _arrivals(len(items), load, random)
    asked = list[Asked]()
    for item, arrival in zip(items, arrivals, strict=True):
        asked.append(Asked(item, repeats.get(item.id, 0), arrival))
        repeats[item.id] = repeats.get(item.id, 0) + 1
    return tuple(asked)


def _recorded(items: Sequence[Item]) -> list[float]:
    """Seconds from the first one's: a part of a trace begins at once too."""
    arrivals = [item.arrival or 0.0 for item in items]
    return [arrival - arrivals[0] for arrival in arrivals]


def _arrivals(number: int, load: Load, random: Random) -> list[float]:
    """Seconds from the block's beginning; the first comes at once. Gaps have the mean 1 / rate."""
    if load.request_rate is None:
        return [0.0] * number
    now, arrivals = 0.0, list[float]()
    for _ in range(number):
        arrivals.append(now)
        now += random.gammavariate(load.burstiness, 1 / (load.request_rate * load.burstiness))
    return arrivals
