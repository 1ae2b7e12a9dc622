"""What is asked when."""

from collections import Counter
from dataclasses import replace
from itertools import count, pairwise

import pytest

from paceline.bench.base import Item, Load, Mode, Workload
from paceline.bench.schedule import MIXED, WAVES, BlockPlan, plan_blocks
from paceline.bench.settings import trace_load

MODES = (Mode("off"), Mode("ngram", "ngram", 4), Mode("ngram:8", "ngram", 8))


def workload(**sizes: int) -> Workload:
    items = [
        Item(f"{name}-{number}", name, ("question",), arrival=float(number))
        for name, size in sizes.items()
        for number in range(size)
    ]
    return Workload("made up", tuple(items))


def blocks(load: Load, *, rounds: int = 1, seed: int = 0, follows_trace: bool = False, **sizes: int) -> list[BlockPlan]:
    return list(plan_blocks(workload(**sizes), load, MODES, rounds=rounds, seed=seed, follows_trace=follows_trace))


def test_one_at_a_time_every_item_is_a_block_and_classes_take_turns() -> None:
    plans = blocks(Load(concurrency=1), code=3, prose=2)
    assert [plan.asked[0].item.id for plan in plans] == ["code-0", "prose-0", "code-1", "prose-1", "code-2"]
    assert [plan.index for plan in plans] == [0, 1, 2, 3, 4]
    assert all(len(plan.asked) == 1 for plan in plans)


def test_every_block_has_every_mode_once_and_the_orders_differ() -> None:
    plans = blocks(Load(concurrency=1), code=40)
    assert all(set(plan.modes) == set(MODES) and len(plan.modes) == len(MODES) for plan in plans)
    firsts = Counter(plan.modes[0].name for plan in plans)
    assert set(firsts) == {mode.name for mode in MODES}, "each mode must come first somewhere"


@pytest.mark.parametrize("concurrency", [2, 4, 16])
def test_a_block_of_many_is_large_enough_and_asks_everything(concurrency: int) -> None:
    plans = blocks(Load(concurrency=concurrency), code=9, prose=3)
    assert all(len(plan.asked) == WAVES * concurrency for plan in plans)
    asked = Counter((each.item.id, each.repeat) for plan in plans for each in plan.asked)
    assert set(asked.values()) == {1}, "the same question twice needs another repeat"
    assert {name for name, _ in asked} == {item.id for item in workload(code=9, prose=3).items}
    assert all({each.item.task_class for each in plan.asked} == {plan.task_class} for plan in plans)


def test_rounds_ask_again_as_other_repeats() -> None:
    plans = blocks(Load(concurrency=1), rounds=3, code=2)
    assert [(plan.asked[0].item.id, plan.asked[0].repeat) for plan in plans] == [
        ("code-0", 0),
        ("code-1", 0),
        ("code-0", 1),
        ("code-1", 1),
        ("code-0", 2),
        ("code-1", 2),
    ]


def gaps(load: Load, number: int, seed: int = 0) -> list[float]:
    (plan,) = blocks(load, seed=seed, code=number)
    arrivals = [each.arrival for each in plan.asked]
    return [later - sooner for sooner, later in pairwise(arrivals)]


def test_arrivals_of_an_open_loop_have_the_rate_and_the_burstiness() -> None:
    """4,000 gaps of a gamma distribution of shape s and mean m have the variance m²/s; ten standard errors of each."""
    for shape in (0.25, 1.0, 4.0):
        found = gaps(Load(request_rate=5.0, burstiness=shape), 4001)
        mean = sum(found) / len(found)
        variance = sum((gap - mean) ** 2 for gap in found) / len(found)
        assert abs(mean - 0.2) < 10 * 0.2 / (shape * 4000) ** 0.5
        ratio = variance / (0.2**2 / shape)
        assert abs(ratio - 1) < 10 * ((2 + 6 / shape) / 4000) ** 0.5


def test_chance_comes_from_the_seed_alone() -> None:
    load = Load(request_rate=2.0)
    assert gaps(load, 20, seed=3) == gaps(load, 20, seed=3)
    assert gaps(load, 20, seed=3) != gaps(load, 20, seed=4)


def test_a_trace_is_one_block_at_its_own_times() -> None:
    (plan,) = blocks(Load(request_rate=1.0), follows_trace=True, code=3, prose=1)
    assert plan.task_class == MIXED
    assert [each.arrival for each in plan.asked] == [0.0, 1.0, 2.0, 0.0]


def test_without_a_number_of_rounds_there_is_no_end() -> None:
    endless = plan_blocks(workload(code=2), Load(concurrency=1), MODES, rounds=None, seed=0)
    assert [next(endless).asked[0].repeat for _ in range(7)] == [0, 0, 1, 1, 2, 2, 3]


def test_indices_go_on_from_load_to_load() -> None:
    indices = count()
    found = [
        plan.index
        for concurrency in (1, 2)
        for plan in plan_blocks(
            workload(code=3), Load(concurrency=concurrency), MODES, rounds=1, seed=0, indices=indices
        )
    ]
    assert found == [0, 1, 2, 3]


def test_a_part_of_a_trace_begins_at_once() -> None:
    whole = workload(code=3, prose=0)
    part = Workload("part", tuple(replace(item, arrival=1000 + 2.5 * i) for i, item in enumerate(whole.items)))
    load = trace_load(part)
    assert load.request_rate == pytest.approx(3 / 5)
    (plan,) = plan_blocks(part, load, MODES, rounds=1, seed=0, follows_trace=True)
    assert [each.arrival for each in plan.asked] == [0.0, 2.5, 5.0]
