"""What other engines got wrong about ends, memory, withdrawal and reuse, one small case each."""

# Numbers such as V26 are those of the survey of other engines' bug reports that these cases were taken from.

from collections.abc import Callable, Sequence

import pytest
from engine_desk import TABLE, TEXTS, VOCAB, Desk, right, wrong
from engine_parts import WatchedProposer
from engine_reference import Model

from paceline.controller import FixedController
from paceline.engine import EngineOptions, FinishReason
from paceline.errors import UnsoundEngineError
from paceline.proposers import NgramProposer
from paceline.sampling_params import SamplingParams
from paceline.telemetry import SpeculationStats, StepRecord
from paceline.testing import ScriptedController, ScriptedDraft, ScriptedProposer, TableModel, decode_plainly


def draft_model(
    max_length: int = 64, num_pages: int = 16, table: Callable[..., object] = TABLE
) -> tuple[TableModel, WatchedProposer]:
    model = TableModel(table, VOCAB, max_length=max_length, num_pages=num_pages, max_rows=5)  # type: ignore[arg-type]
    return model, WatchedProposer(table, model)  # type: ignore[arg-type]


# Steps


@pytest.mark.parametrize("script", [right, wrong])
def test_no_draft_after_an_accepting_or_rejecting_step(script: Callable[..., ScriptedDraft]) -> None:
    """V5, V27: a step without drafts begins behind what was really accepted, which may be nothing."""
    desk = Desk(ScriptedController("scripted", [3, 0, 3, 0, 0, 2, 0, 1, 0, 0, 0, 0]), [ScriptedProposer(script)])
    sequence = desk.ask((0, 1, 2))
    desk.drain()
    assert desk.tokens(sequence) == decode_plainly(TABLE, (0, 1, 2), 12)


def test_late_result_of_a_preempted_sequence_is_dropped() -> None:
    """V26: it was preempted while its row was computed; the row's token comes once, from the second computation."""
    strikes = []

    class Striking(TableModel):
        def forward(self, segments):  # type: ignore[no-untyped-def]
            scores = super().forward(segments)
            while strikes:
                desk.engine.preempt(strikes.pop())
            return scores

    proposer = ScriptedProposer(right)
    desk = Desk(FixedController("scripted", 3), [proposer], model=Striking(TABLE, VOCAB))
    first, second = desk.ask((0, 1)), desk.ask((2, 2))
    desk.step()
    strikes.append(first)
    assert [output.sequence for output in desk.step()] == [second]
    assert proposer.context(first) == (0, 1, *desk.tokens(first))  # nothing of the late draft, nothing twice
    assert desk.engine.stats().num_preemptions == 1
    desk.drain()
    for sequence, prompt in ((first, (0, 1)), (second, (2, 2))):
        assert desk.tokens(sequence) == decode_plainly(TABLE, prompt, 12)


def test_cancelling_one_of_two_with_a_shared_beginning_in_the_middle_of_a_step() -> None:
    """S1: the other one, and one that comes later with the same beginning, say what they say alone."""
    shared = (0, 1, 2, 3, 4, 3, 2, 1, 0)
    cancel = list[int]()

    def on_record(_: StepRecord) -> None:
        while cancel:
            assert desk.engine.abort(cancel.pop()) is None

    desk = Desk(FixedController("scripted", 3), [ScriptedProposer(right)], on_record=on_record)
    first = desk.ask((*shared, 1), 30)
    desk.step(2)
    second = desk.ask((*shared, 2), 20)
    desk.step()
    cancel.append(first)
    desk.step(2)
    third = desk.ask((*shared, 3), 20)
    desk.drain()
    assert desk.engine.sequences == []
    for sequence, last in ((second, 2), (third, 3)):
        assert desk.tokens(sequence) == decode_plainly(TABLE, (*shared, last), 20)
        assert desk.num_reused(sequence) == len(shared)


@pytest.mark.parametrize("num_agreed", range(5))
def test_two_with_a_shared_beginning_that_part_inside_a_draft(num_agreed: int) -> None:
    """Both get the same draft behind the same tokens but one; for one of them it is wrong from some token on."""
    parting = decode_plainly(TABLE, (0, 1, 2, 3), 12)

    def script(_: tuple[int, ...], num: int) -> ScriptedDraft:
        return ScriptedDraft((*parting[:num_agreed], 0, 1, 2)[:num])

    desk = Desk(FixedController("scripted", 5), [ScriptedProposer(script)])
    asked = {desk.ask(prompt): prompt for prompt in ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3, parting[0]))}
    desk.drain()
    for sequence, prompt in asked.items():
        assert desk.tokens(sequence) == decode_plainly(TABLE, prompt, 12)


# Ends


def test_nothing_behind_an_end_of_text_inside_an_accepted_draft() -> None:
    """H2, S6, V12: neither tokens, nor the mean acceptance length, nor the proposers' contexts."""
    plain = decode_plainly(TABLE, (0, 1), 12)
    eos = plain[3]
    expected = plain[: plain.index(eos) + 1]
    proposer = ScriptedProposer(right)
    desk = Desk(FixedController("scripted", 8), [proposer], eos=[eos])
    sequence = desk.ask((0, 1))
    desk.drain()
    stats = SpeculationStats()
    for record in desk.records:
        stats.add(record)
    assert (desk.tokens(sequence), desk.reason(sequence)) == (expected, FinishReason.STOP)
    assert stats.num_emitted == len(expected) - 1  # the first token is the prompt's
    assert desk.engine.stats().finish_counts == {FinishReason.STOP: 1}


@pytest.mark.parametrize("limit", range(1, 9))
def test_limit_behind_a_stop_in_one_step_does_not_hide_it(limit: int) -> None:
    """S4, L1: a stop within the limit is a stop, one token more is a limit, and no token is lost or added."""
    plain = decode_plainly(TABLE, (0, 1), 12)
    stop = plain[4]
    first = plain.index(stop) + 1
    desk = Desk(FixedController("scripted", 8), [ScriptedProposer(right)])
    sequence = desk.ask((0, 1), limit, stop_token_ids=[stop])
    desk.drain()
    assert desk.tokens(sequence) == plain[: min(first, limit)]
    assert desk.reason(sequence) is (FinishReason.STOP if first <= limit else FinishReason.LENGTH)


@pytest.mark.parametrize("k", [1, 3, 9])
@pytest.mark.parametrize("begin", range(8))
@pytest.mark.parametrize("length", [1, 2, 3])
def test_stop_string_anywhere_in_an_accepted_draft(begin: int, length: int, k: int) -> None:
    """S5, V11: however early in it, and across its border; tokens and text end with it."""
    plain = decode_plainly(TABLE, (0, 1), 16)
    stop = b"".join(TEXTS[token] for token in plain[begin : begin + length]).decode()
    model = Model(TABLE, VOCAB, (), (), TEXTS)
    expected = model.answer((0, 1), SamplingParams(16, stop=stop), 64)
    desk = Desk(FixedController("scripted", k), [ScriptedProposer(right)])
    sequence = desk.ask((0, 1), 16, stop=stop)
    desk.drain()
    (*_, last) = desk.outputs
    assert (tuple(desk.tokens(sequence)), last.finish_reason) == (expected.tokens, FinishReason.STOP)
    assert last.stop is not None
    assert (last.stop.text, last.stop.num_bytes) == (stop, length)


@pytest.mark.parametrize("min_tokens", [0, 1, 2, 5, 8, 12])
@pytest.mark.parametrize("k", [0, 4])
def test_minimum_holds_inside_a_draft(min_tokens: int, k: int) -> None:
    """V13: a stop token is not drawn before it, a stop string ends nothing before it."""
    params = SamplingParams(12, stop_token_ids=[1], stop="c", min_tokens=min_tokens)
    expected = Model(TABLE, VOCAB, (), (), TEXTS).answer((0, 1), params, 64)
    desk = Desk(FixedController("scripted", k) if k else None, [ScriptedProposer(right)])
    sequence = desk.ask((0, 1), 12, stop_token_ids=[1], stop="c", min_tokens=min_tokens)
    desk.drain()
    assert (tuple(desk.tokens(sequence)), desk.reason(sequence)) == (expected.tokens, expected.finish_reason)
    assert len(expected.tokens) >= min_tokens


@pytest.mark.parametrize("k", [0, 1, 5, 40])
def test_capacity_ends_inside_a_draft(k: int) -> None:
    """A1: the answer fills the context to its last position, whatever is drafted, and others do not shorten it."""
    controller = FixedController("scripted", k) if k else None
    desk = Desk(controller, [ScriptedProposer(right)], max_length=13, num_pages=5)
    asked = {desk.ask(prompt, None): prompt for prompt in ((0, 1, 2), (1,), (2, 2, 2, 2))}
    desk.drain()
    for sequence, prompt in asked.items():
        assert desk.tokens(sequence) == decode_plainly(TABLE, prompt, 13 - len(prompt))
        assert desk.reason(sequence) is FinishReason.LENGTH


# Draft models


@pytest.mark.parametrize("draft_length", [2, 5, 9, 64])
def test_draft_model_with_a_shorter_context_stops_proposing(draft_length: int) -> None:
    """V24, S15: nothing is written past its context, and the text goes on."""
    _, proposer = draft_model(draft_length)
    desk = Desk(FixedController("table", 4), [proposer])
    sequence = desk.ask((0, 1, 2), 30)
    desk.drain()
    assert desk.tokens(sequence) == decode_plainly(TABLE, (0, 1, 2), 30)
    num_drafted = sum(step.drafted for record in desk.records for step in record.sequences)
    assert (num_drafted == 0) == (draft_length == 2)


def test_pages_of_a_draft_model_are_part_of_admission() -> None:
    """V28, L8: its pages hold one sequence, so one runs at a time, although the target has room for all."""
    _, proposer = draft_model(max_length=16, num_pages=4)
    desk = Desk(FixedController("table", 3), [proposer], num_pages=64)
    asked = [desk.ask((i, i, 1, 2, 3, 4, 0, 1), 8) for i in range(3)]
    num_running = []
    while desk.engine.has_unfinished:
        desk.step()
        num_running.append(desk.engine.stats().num_running)
    assert max(num_running) == 1
    for i, sequence in enumerate(asked):
        assert desk.tokens(sequence) == decode_plainly(TABLE, (i, i, 1, 2, 3, 4, 0, 1), 8)


def test_draft_model_after_a_reused_beginning_and_idle_steps() -> None:
    """L10: its positions are consecutive, whatever of the prompt it finds, and however long it was not asked."""
    _, proposer = draft_model()
    lengths = [0, 0, 3, 3, 0, 0, 0, 4, 1] * 20
    desk = Desk(ScriptedController("table", lengths), [proposer])
    shared = (0, 1, 2, 3, 4, 0, 1, 2, 3)
    for last in (1, 2, 1):
        sequence = desk.ask((*shared, last), 20)
        desk.drain()
        assert desk.tokens(sequence) == decode_plainly(TABLE, (*shared, last), 20)
    assert desk.num_reused(sequence) == len(shared) + 1


def test_proposers_keep_nothing_of_an_earlier_request() -> None:
    """L6, L7: the second run of a request drafts and accepts what the first did, whatever came between."""

    def figures(desk: Desk, prompt: Sequence[int]) -> list[tuple[int, int]]:
        del desk.records[:]
        desk.ask(prompt, 20)
        desk.drain()
        return [(step.drafted, step.accepted) for record in desk.records for step in record.sequences if step.emitted]

    desk = Desk(FixedController("ngram", 4), [NgramProposer(1, 3)])
    first = figures(desk, (0, 1, 0, 1))
    for other in ((3, 4, 3, 4), (0, 2, 0, 2), (1, 0, 1, 0)):
        figures(desk, other)
    assert figures(desk, (0, 1, 0, 1)) == first
    assert sum(drafted for drafted, _ in first) > 0


# Reuse


@pytest.mark.parametrize("length", [4, 5, 8, 11, 12])
def test_last_page_of_a_prompt_is_reusable(length: int) -> None:
    """V30: all of an equal prompt is there, to its last token, with a draft model beside it or without."""
    prompt = tuple(i % VOCAB for i in range(length))
    _, proposer = draft_model()
    for desk in (Desk(), Desk(FixedController("table", 3), [proposer])):
        first = desk.ask(prompt)
        desk.drain()
        second, num_before = desk.ask(prompt), len(desk.records)
        desk.drain()
        assert desk.num_reused(second) == length
        assert desk.records[num_before].num_prefill_rows == 1  # for its logits alone
        assert desk.tokens(second) == desk.tokens(first) == decode_plainly(TABLE, prompt, 12)


def test_answer_is_reusable_by_the_next_turn() -> None:
    desk = Desk(FixedController("scripted", 3), [ScriptedProposer(right)])
    first = desk.ask((0, 1, 2))
    desk.drain()
    second = desk.ask((0, 1, 2, *desk.tokens(first), 4, 4))
    desk.drain()
    assert desk.num_reused(second) >= 12  # the newest token is in no cache, and the last page may not be full
    assert desk.num_reused(desk.outputs[0].sequence) == 0


def test_tenants_share_nothing() -> None:
    desk = Desk()
    prompt = (0, 1, 2, 3, 4, 0, 1, 2)
    for namespace, num_reused in (("a", 0), ("b", 0), ("", 0), ("a", 8), ("ab", 0)):
        sequence = desk.ask(prompt, namespace=namespace)
        desk.drain()
        assert desk.num_reused(sequence) == num_reused, namespace


def test_nothing_grows_over_thousands_of_requests() -> None:
    """S16, A2: tables, pages and proposers are as they were; the reusable pages are bounded by the store."""
    _, proposer = draft_model()
    scripted, ngram = ScriptedProposer(right), NgramProposer(1, 3)
    desk = Desk(FixedController("scripted", 2), [scripted, ngram, proposer], options=EngineOptions(max_num_seqs=4))
    for i in range(2000):
        desk.ask((i % VOCAB, i // VOCAB % VOCAB, i // VOCAB**2 % VOCAB), 3, namespace=str(i % 7))
        if i % 50 == 49:
            while desk.engine.has_unfinished:
                desk.engine.step()
    desk.drain()
    engine = desk.engine
    assert sum(engine.stats().finish_counts.values()) == 2000
    assert not any((scripted._contexts, scripted._num_extends, ngram._indexes, proposer._contexts))
    assert not any((engine._scheduler._states, engine._scheduler.running, engine._scheduler.waiting))
    assert not engine._cache._num_admitted
    for cache in (engine._cache._target, engine._cache._drafts["table"].cache):
        assert not cache._entries  # type: ignore[attr-defined]
        assert len(cache._index._by_page) <= 16  # type: ignore[attr-defined]
        assert len(cache._index._roots) <= 7  # type: ignore[attr-defined]


def test_finding_of_the_idle_check_stops_admission(caplog: pytest.LogCaptureFixture) -> None:
    """An engine whose books do not agree answers nobody, rather than wrongly."""
    desk = Desk()
    desk.ask((0, 1), 1)
    desk.engine._cache._target._pool._free.pop()  # type: ignore[attr-defined]
    desk.engine.step()
    assert "pages without an owner" in caplog.text
    assert not desk.engine.is_sound
    assert desk.engine.stats().num_integrity_failures == 1
    with pytest.raises(UnsoundEngineError, match="takes no more requests"):
        desk.ask((0, 1))
