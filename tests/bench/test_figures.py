"""Figures of blocks whose answers are known by construction."""

from dataclasses import astuple, replace

import pytest
from bench_blocks import NGRAM, OFF_MODE, ONE, answer, block, failed, pair

from paceline.bench.base import Answer, Block, Counts, Load, Mode, StepTime
from paceline.bench.figures import block_sums, summarise
from paceline.bench.figures.ceiling import speculation_ceiling
from paceline.bench.result import Run, Spread

MODES = (OFF_MODE, NGRAM)


def runs_of(blocks: list[Block], **options: object) -> dict[tuple[str, str, str], Run]:
    runs = summarise(blocks, modes=MODES, **options)  # type: ignore[arg-type]
    found = {(run.task_class, run.mode, run.load_label): run for run in runs}
    assert len(found) == len(runs)
    return found


def ngram(blocks: list[Block], **options: object) -> Run:
    return runs_of(blocks, **options)["all", "ngram-4", "c=1"]


def pairs(num: int, *speedups: float, start: int = 0, num_tokens: int = 11, task_class: str = "code") -> list[Block]:
    """`num` pairs of blocks of one answer each, of the given speedups in turn."""
    return [
        each
        for i in range(num)
        for each in pair(
            start + i,
            answer(num_tokens, tpot=0.1),
            answer(num_tokens, tpot=0.1 / speedups[i % len(speedups)]),
            task_class=task_class,
        )
    ]


def test_a_speedup_of_decoding_and_of_the_request() -> None:
    run = ngram(pairs(6, 2))
    assert run.speedup == pytest.approx(2)
    assert run.speedup_ci == (pytest.approx(2), pytest.approx(2))
    assert run.verdict == "faster"
    assert run.macro_speedup == pytest.approx(2)
    assert run.request_speedup == pytest.approx((0.5 + 1) / (0.5 + 0.5))
    assert run.request_speedup_ci == (pytest.approx(1.5), pytest.approx(1.5))
    assert (run.num_blocks, run.num_answers, run.num_errors, run.num_output_tokens) == (6, 6, 0, 66)
    assert run.output_tokens_per_second == pytest.approx(11)
    assert run.macro_tokens_per_second == pytest.approx(20)
    assert run.identical_fraction == 1
    plain = runs_of(pairs(6, 2))["all", "off", "c=1"]
    assert (plain.speedup, plain.speedup_ci, plain.verdict, plain.request_speedup) == (None, None, None, None)
    assert (plain.macro_speedup, plain.identical_fraction) == (None, None)
    assert plain.output_tokens_per_second == pytest.approx(11 / 1.5)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (pairs(5, 2), "faster"),
        (pairs(4, 2), "undecided"),  # too few
        (pairs(6, 0.5), "slower"),
        (pairs(8, 0.5, 1.9), "undecided"),  # too wide
        (pairs(8, 1.1, 1.2), "faster"),
    ],
)
def test_verdicts(blocks: list[Block], expected: str) -> None:
    run = ngram(blocks)
    assert run.verdict == expected
    assert (run.speedup_ci is None) is (run.num_blocks < 5)


def test_weighted_and_macro_averages_differ_as_they_should() -> None:
    """One long answer at 4 times the speed, three short ones at the same."""
    blocks = pairs(3, 1) + pairs(1, 4, start=3, num_tokens=101)
    run = ngram(blocks)
    assert run.speedup == pytest.approx((130 / 5.5) / (130 / 13))
    assert run.macro_speedup == pytest.approx((1 + 1 + 1 + 4) / 4)
    assert run.macro_tokens_per_second == pytest.approx((10 + 10 + 10 + 40) / 4)
    assert run.output_tokens_per_second == pytest.approx((33 + 101) / (3 * 1.5 + 0.5 + 2.5))


def test_classes_and_loads_have_their_own_figures_and_all_has_all() -> None:
    two = Load(concurrency=2)
    blocks = pairs(5, 2, task_class="code") + pairs(5, 0.5, task_class="chat", num_tokens=21)
    blocks += [replace(each, load=two) for each in pairs(1, 3)]
    found = runs_of(blocks)
    assert list(found) == [
        (task_class, mode, load)
        for task_class, loads in (("code", ("c=1", "c=2")), ("chat", ("c=1",)), ("all", ("c=1", "c=2")))
        for load in loads
        for mode in ("off", "ngram-4")
    ]
    assert found["code", "ngram-4", "c=1"].speedup == pytest.approx(2)
    assert found["chat", "ngram-4", "c=1"].speedup == pytest.approx(0.5)
    assert found["all", "ngram-4", "c=1"].speedup == pytest.approx((150 / 22.5) / (150 / 15))
    assert found["all", "ngram-4", "c=1"].num_blocks == 10
    assert found["all", "ngram-4", "c=2"].speedup == pytest.approx(3)


def test_an_open_loop_has_a_rate_and_no_ceiling() -> None:
    load = Load(request_rate=2.5)
    runs = summarise(pair(0, answer(), answer(), load=load), modes=MODES, forward_ms={1: 1, 8: 2})
    assert {(run.concurrency, run.request_rate, run.ceiling) for run in runs} == {(None, 2.5, None)}


def test_times_of_answers() -> None:
    """Two answers: 3 tokens first, then 2 in every chunk; and a single chunk."""
    first = answer(9, ttft=0.2, tpot=0.1, first=3, per_chunk=2)
    single = answer(4, ttft=0.4, first=4)
    run = ngram(pair(0, first, first) + pair(1, single, single))
    assert run.ttft_ms == _spread(300, 300, 380, 398)
    assert run.tpot_ms == _spread(100, 100, 100, 100)
    assert run.chunk_gap_ms == _spread(200, 200, 200, 200)
    assert run.e2e_ms == _spread(600, 600, 760, 796)
    assert run.macro_tokens_per_second == pytest.approx(10)


def _spread(*values: float) -> Spread:
    return Spread(*(pytest.approx(value) for value in values))


def test_an_answer_of_no_token_has_no_times() -> None:
    nothing = Answer(5, 0, (), "")
    run = ngram(pair(0, nothing, nothing), slo={"ttft": 1e9})
    assert (run.num_answers, run.num_output_tokens, run.ttft_ms, run.speedup) == (1, 0, Spread(), None)
    assert (run.output_tokens_per_second, run.goodput, run.looping_fraction) == (None, None, 0)


def test_goodput_is_of_answers_that_met_every_target() -> None:
    good, late, slow = answer(ttft=0.1), answer(ttft=0.3), answer(ttft=0.1, tpot=0.2)
    blocks = [block("ngram-4", 0, good, late, slow, answer(1, ttft=0.1), failed(), seconds=4)]
    assert ngram(blocks).goodput is None
    assert ngram(blocks, slo={"ttft": 200}).goodput == pytest.approx(3 / 4)
    assert ngram(blocks, slo={"ttft": 200, "tpot": 150}).goodput == pytest.approx(2 / 4)
    assert ngram(blocks, slo={"e2e": 1200}).goodput == pytest.approx(2 / 4)
    assert ngram(blocks, slo={"tpot": 1}).goodput == pytest.approx(1 / 4)  # what decoded nothing, decoded nothing late


def test_answers_that_failed_are_counted_and_their_blocks_are_in_no_speedup() -> None:
    blocks = [*pairs(5, 2), block("off", 5, answer(), answer()), block("ngram-4", 5, failed(), answer())]
    run = ngram(blocks)
    assert (run.num_blocks, run.num_answers, run.num_errors, run.num_output_tokens) == (6, 6, 1, 66)
    assert run.speedup == pytest.approx(2)
    assert run.output_tokens_per_second == pytest.approx(66 / (5 * 1.0 + 1.5))


def test_without_off_there_is_no_speedup() -> None:
    run = ngram([block("ngram-4", i, answer()) for i in range(6)])
    assert (run.speedup, run.verdict, run.request_speedup, run.macro_speedup) == (None, "undecided", None, None)
    assert (run.identical_fraction, run.speedup_without_loops) == (None, None)


def test_only_blocks_that_both_have_are_paired() -> None:
    blocks = [each for each in pairs(6, 2, 1) if (each.mode, each.index) not in {("off", 1), ("ngram-4", 3)}]
    assert ngram(blocks).speedup == pytest.approx((40 / (3 * 0.5 + 1)) / (40 / 4))
    with pytest.raises(ValueError, match="block 0 of code under ngram-4 is there twice"):
        ngram([*blocks, block("ngram-4", 0, answer())])


COUNTS = Counts(
    num_target_steps=10,
    num_emitted=25,
    num_drafts=8,
    num_draft_tokens=30,
    num_accepted_tokens=15,
    per_position=(8, 4, 2, 1),
    drafted={0: 2, 4: 7, 2: 1},
)
MORE = Counts(5, 5, 2, 2, 0, (), {1: 2, 0: 3})


def test_acceptance() -> None:
    run = ngram(pair(0, answer(), answer(counts=COUNTS)) + pair(1, answer(), answer(counts=MORE)))
    assert run.mean_acceptance_length == 30 / 15
    assert run.draft_acceptance_rate == 15 / 32
    assert run.acceptance_by_position == (0.8, 0.4, 0.2, 0.1)
    assert run.num_draft_tokens_chosen == {"0": 5 / 15, "1": 2 / 15, "2": 1 / 15, "4": 7 / 15}


def test_counts_of_a_block_stand_for_those_of_its_answers() -> None:
    run = ngram([block("ngram-4", 0, answer(counts=MORE), counts=COUNTS), block("ngram-4", 1, answer())])
    assert (run.mean_acceptance_length, run.draft_acceptance_rate) == (2.5, 0.5)


def test_acceptance_of_nothing() -> None:
    run = ngram([block("ngram-4", 0, answer())])
    assert (run.mean_acceptance_length, run.draft_acceptance_rate) == (None, None)
    assert (run.acceptance_by_position, run.num_draft_tokens_chosen) == ((), {})
    plain = replace(MORE, num_drafts=0, num_draft_tokens=0, drafted={0: 5})
    run = ngram([block("ngram-4", 0, answer(counts=plain))])
    assert (run.mean_acceptance_length, run.draft_acceptance_rate) == (1, None)
    assert (run.acceptance_by_position, run.num_draft_tokens_chosen) == ((), {"0": 1})


def test_time_memory_energy_and_cost() -> None:
    blocks = [
        block("ngram-4", 0, answer(), step_time=StepTime(1.0, 2.0, 1.0), energy_joules=22.0, seconds=1),
        block("ngram-4", 1, answer(), step_time=StepTime(0.0, 4.0, 0.0), seconds=1),
    ]
    run = ngram(blocks, memory={"ngram-4": {"target": 7, "caches": 2}}, peak_rss=50, price_per_hour=3.96)
    assert run.time_share == {"draft": 0.125, "verify": 0.75, "host": 0.125}
    assert run.memory_bytes == {"target": 7, "caches": 2, "peak_rss": 50}
    assert run.energy_joules_per_token == 2
    assert run.cost_per_million_tokens == pytest.approx(3.96 / (11 * 3600) * 1e6)
    bare = ngram([block("ngram-4", 0, answer())])
    assert (bare.time_share, bare.memory_bytes) == ({}, {})
    assert (bare.energy_joules_per_token, bare.cost_per_million_tokens) == (None, None)


def test_loops_are_told_apart() -> None:
    loop = [9] * 41
    blocks = pairs(5, 2, num_tokens=41)
    blocks += pair(5, answer(41, ids=loop), answer(41, ids=loop, tpot=0.01, counts=COUNTS))
    blocks += [block("ngram-4", 6, answer(counts=MORE))]
    run = ngram(blocks)
    assert run.looping_fraction == pytest.approx(1 / 7)
    assert run.speedup_without_loops == pytest.approx(2)
    assert run.speedup_without_loops_ci == (pytest.approx(2), pytest.approx(2))
    assert (run.mean_acceptance_length, run.mean_acceptance_length_without_loops) == (2, 1)
    assert run.speedup == pytest.approx((240 / 10.4) / (240 / 24))
    assert ngram(pair(0, answer(41, ids=loop), answer(41, ids=loop))).speedup_without_loops is None


@pytest.mark.parametrize(
    ("concurrency", "expected"),
    [
        (1, 8 / 3),  # n = 8: 8 · 10 / 30
        (2, 4 * (10 + 10 / 3) / 30),  # T(2) lies between T(1) and T(4); n = 4
        (4, 2 * 20 / 30),
        (5, None),  # 10 rows were not measured
        (9, None),
        (None, None),
    ],
)
def test_the_ceiling(concurrency: int | None, expected: float | None) -> None:
    found = speculation_ceiling({1: 10, 4: 20, 8: 30}, concurrency)
    assert found == (None if expected is None else pytest.approx(expected))


def test_the_ceiling_is_at_least_one_and_every_mode_has_it() -> None:
    assert speculation_ceiling({1: 10, 2: 30}, 1) == 1
    assert speculation_ceiling({2: 10, 4: 20}, 1) is None
    found = runs_of(pairs(1, 2), forward_ms={1: 10, 4: 20})
    assert {run.ceiling for run in found.values()} == {2}


def test_sums_of_a_block() -> None:
    [off, _] = pair(3, answer(11, ttft=0.5, tpot=0.1), answer(), task_class="chat")
    sums = block_sums(replace(off, observations=(*off.observations, *block("off", 4, failed()).observations)))
    assert astuple(sums) == (
        3,
        "chat",
        "off",
        1,
        None,
        pytest.approx(1.5),
        11,
        10,
        pytest.approx(1),
        pytest.approx(1.5),
        1,
        False,
    )


def test_no_blocks_no_runs() -> None:
    assert summarise([], modes=MODES) == []
    only = summarise([block("off", 0, answer())], modes=(OFF_MODE, NGRAM, Mode("late", "ngram", 2)))
    assert [(run.task_class, run.mode) for run in only] == [("code", "off"), ("all", "off")]
    assert ONE.label == only[0].load_label
