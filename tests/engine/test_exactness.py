"""Same text: whatever is drafted, the tokens are those that the table gives when it is asked one by one."""

from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.controller import FixedController
from paceline.proposers import NgramProposer
from paceline.sampling_params import SamplingParams
from paceline.testing import (
    LogitsTable,
    ScriptedController,
    ScriptedDraft,
    ScriptedProposer,
    TableModel,
    decode_plainly,
    seeded_table,
)

RunOne = Callable[..., Any]  # see conftest.py

TABLE = seeded_table(3, seed=5)
NUM_TOKENS = 6


def contexts(longest: int) -> Iterator[tuple[int, ...]]:
    for length in range(1, longest + 1):
        yield from product(range(3), repeat=length)


def run_script(run_one: RunOne, draft: ScriptedDraft, prompt: tuple[int, ...], table: LogitsTable = TABLE) -> list[int]:
    """Offer the same draft in every step."""
    proposer = ScriptedProposer(lambda *_: draft)
    runtime = TableModel(table, 3, num_padding=2)
    controller = FixedController("scripted", 5)
    run = run_one(runtime, prompt, SamplingParams(NUM_TOKENS), controller, [proposer])
    return list(run.tokens)


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_every_context_and_every_chain(run_one: RunOne, length: int) -> None:
    for prompt in contexts(3 if length < 3 else 2):
        expected = decode_plainly(TABLE, prompt, NUM_TOKENS)
        for tokens in product(range(3), repeat=length):
            assert run_script(run_one, ScriptedDraft(tokens), prompt) == expected, (prompt, tokens)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_small_tree(run_one: RunOne, size: int) -> None:
    prompts = list(contexts(2 if size < 3 else 1))
    for parents in product(*(range(-1, i) for i in range(size))):
        for tokens in product(range(3), repeat=size):
            for prompt in prompts:
                expected = decode_plainly(TABLE, prompt, NUM_TOKENS)
                found = run_script(run_one, ScriptedDraft(tokens, parents), prompt)
                assert found == expected, (prompt, tokens, parents)


def informed_tree(table: LogitsTable, seed: int, share_right: float) -> ScriptedProposer:
    """Random trees whose tokens are often the target's own, so that deep branches are accepted too."""

    def script(context: tuple[int, ...], num_tokens: int) -> ScriptedDraft:
        random = Random(f"{seed} {context}")
        tokens, parents = list[int](), list[int]()
        for i in range(num_tokens):
            parent = random.randint(-1, i - 1)
            path, node = list[int](), parent
            while node >= 0:
                path.append(tokens[node])
                node = parents[node]
            (right,) = decode_plainly(table, (*context, *reversed(path)), 1)
            tokens.append(right if random.random() < share_right else random.randrange(3))
            parents.append(parent)
        return ScriptedDraft(tuple(tokens), tuple(parents))

    return ScriptedProposer(script)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    prompt=st.lists(st.integers(0, 2), min_size=1, max_size=12),
    lengths=st.lists(st.integers(0, 8), min_size=40, max_size=40),
    share_right=st.sampled_from([0.0, 0.5, 0.9]),
    page_size=st.integers(1, 5),
    prefill_chunk=st.integers(1, 9),
)
def test_random_trees_and_a_new_length_every_step(
    run_one: RunOne,
    seed: int,
    prompt: list[int],
    lengths: list[int],
    share_right: float,
    page_size: int,
    prefill_chunk: int,
) -> None:
    table = seeded_table(3, seed)
    runtime = TableModel(table, 3, num_padding=1, page_size=page_size, num_pages=60)
    controller = ScriptedController("scripted", lengths)
    proposer = informed_tree(table, seed, share_right)
    run = run_one(runtime, prompt, SamplingParams(25), controller, [proposer], prefill_chunk=prefill_chunk)
    assert run.tokens == decode_plainly(table, prompt, 25)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(1, 3),
    prompt=st.lists(st.integers(0, 3), min_size=1, max_size=20),
    lengths=st.lists(st.integers(0, 8), min_size=40, max_size=40),
)
def test_ngram_with_a_new_length_every_step(
    run_one: RunOne, seed: int, order: int, prompt: list[int], lengths: list[int]
) -> None:
    table = seeded_table(4, seed, order)
    controller = ScriptedController("ngram", lengths)
    run = run_one(TableModel(table, 4), prompt, SamplingParams(30), controller, [NgramProposer(1, 4)])
    assert run.tokens == decode_plainly(table, prompt, 30)


def test_accepted_tokens_are_marked_and_counted(run_one: RunOne) -> None:
    """A proposer that is always right: τ = K + 1, and every token but each step's last is a draft token."""
    prompt = (0, 1, 2)
    proposer = ScriptedProposer(lambda context, num: ScriptedDraft(tuple(decode_plainly(TABLE, context, num))))
    run = run_one(TableModel(TABLE, 3), prompt, SamplingParams(13), FixedController("scripted", 3), [proposer])
    assert run.tokens == decode_plainly(TABLE, prompt, 13)
    assert run.is_draft == [False] + [True, True, True, False] * 3
    assert [len(output.tokens) for output in run.outputs] == [1, 4, 4, 4]


def test_several_proposers_follow_one_sequence(run_one: RunOne) -> None:
    """The one that is chosen late has seen everything."""
    prompt, seen = (0, 1, 2), list[tuple[int, ...]]()

    def watching(context: tuple[int, ...], _: int) -> ScriptedDraft:
        seen.append(context)
        return ScriptedDraft()

    controller = ScriptedController("scripted", [0, 0, 0, 2, 0, 0, 2, 0])
    run = run_one(
        TableModel(TABLE, 3), prompt, SamplingParams(9), controller, [NgramProposer(), ScriptedProposer(watching)]
    )
    told = (*prompt, *run.tokens)
    assert seen == [told[:7], told[:10]]
