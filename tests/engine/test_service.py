"""Who is served when: order, priorities, gaps, shortage of pages, consumers that are behind."""

from engine_desk import TABLE, VOCAB, Desk, right, wrong

from paceline.controller import FixedController
from paceline.engine import EngineOptions, FinishReason
from paceline.testing import ScriptedProposer, TableModel, decode_plainly


def test_two_that_do_not_fit_together_never_wait_for_each_other() -> None:
    """Both grow until there is no page left; the second gives way and is computed again."""
    desk = Desk(
        FixedController("scripted", 3),
        [ScriptedProposer(right)],
        num_pages=8,
        max_length=28,
        options=EngineOptions(max_draft_tokens=3),
    )
    asked = {desk.ask(prompt, 20): prompt for prompt in ((0,) * 8, (1,) * 8)}
    desk.drain()
    assert desk.engine.stats().num_preemptions > 0
    for sequence, prompt in asked.items():
        assert desk.tokens(sequence) == decode_plainly(TABLE, prompt, 20)


def test_two_long_prompts_that_do_not_fit_together() -> None:
    desk = Desk(num_pages=8, max_length=32)
    asked = {desk.ask(prompt, 5): prompt for prompt in ((0,) * 25, (1,) * 25)}
    desk.drain()
    assert list(dict.fromkeys(output.sequence for output in desk.outputs)) == list(asked)
    for sequence, prompt in asked.items():
        assert desk.tokens(sequence) == decode_plainly(TABLE, prompt, 5)


def test_gap_of_a_stream_while_a_long_prompt_is_read() -> None:
    """Every step has a token for the stream, and few rows of the prompt."""
    model = TableModel(TABLE, VOCAB, num_pages=40, max_length=100, max_rows=32)
    options = EngineOptions(prefill_chunk=20, mixed_prefill_chunk=4)
    desk = Desk(FixedController("scripted", 3), [ScriptedProposer(wrong)], model=model, options=options)
    stream = desk.ask((0, 1), 30)
    desk.step()
    reader = desk.ask((2,) * 60, 3)
    while not any(output.sequence == reader for output in desk.outputs):
        assert next(output.sequence for output in desk.step()) == stream
        record = desk.records[-1]
        assert record.num_prefill_rows <= 4
        assert record.num_decode_rows == 1
        assert record.num_draft_rows <= 3
    assert len(desk.records) == 1 + 60 // 4
    desk.drain()


def test_nobody_overtakes_the_first_in_line() -> None:
    """A large request waits for pages; small ones behind it would have room, and wait too."""
    desk = Desk(num_pages=8, max_length=32)
    first = desk.ask((0,) * 12, 4)
    desk.step()
    large, small = desk.ask((1,) * 24, 4), desk.ask((2,), 2)
    desk.step()
    assert desk.engine.stats().num_running == 1
    desk.drain()
    assert list(dict.fromkeys(output.sequence for output in desk.outputs)) == [first, large, small]


def test_priorities() -> None:
    """The urgent one takes the place of the last that is less urgent; among equals it is the order of arrival."""
    desk = Desk(options=EngineOptions(max_num_seqs=2))
    first, second = desk.ask((0, 1), 20), desk.ask((1, 2), 20)
    desk.step(2)
    urgent, patient = desk.ask((2, 3), 6, priority=1), desk.ask((3, 4), 6, priority=-1)
    assert {output.sequence for output in desk.step()} == {first, urgent}
    desk.drain()
    ends = [output.sequence for output in desk.outputs if output.finish_reason]
    assert ends == [urgent, first, second, patient]
    for sequence, prompt, num in ((first, (0, 1), 20), (second, (1, 2), 20), (urgent, (2, 3), 6), (patient, (3, 4), 6)):
        assert desk.tokens(sequence) == decode_plainly(TABLE, prompt, num)


def test_held_sequence_takes_no_part_and_gives_way_first() -> None:
    desk = Desk(num_pages=8, max_length=28)
    held, other = desk.ask((0,) * 8, 20), desk.ask((1,) * 8, 20)
    desk.step(2)
    desk.engine.hold(held)
    num = len(desk.tokens(held))
    while desk.engine.has_work:
        assert [output.sequence for output in desk.step()] == [other]
    assert desk.reason(other) is FinishReason.LENGTH
    assert desk.engine.stats().num_preemptions == 1
    assert (len(desk.tokens(held)), desk.engine.step()) == (num, [])
    desk.engine.resume(held)
    desk.drain()
    assert desk.tokens(held) == decode_plainly(TABLE, (0,) * 8, 20)
