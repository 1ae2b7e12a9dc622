"""What a stream's events make of an answer: its text, its tokens, and how many of them each chunk holds."""

from typing import Any

import pytest
from endpoint_desk import answer_to, ask

from paceline.bench.base import Counts
from paceline.testing.endpoint import Part, Piece, Reply, chat_reply, event


def _pieces(*around: dict[str, Any]) -> list[Piece]:
    return [Piece(0.25, text, around=each) for text, each in zip("abc", around, strict=True)]


def _tokens(reply: Reply, **how: Any) -> list[int]:
    answer = answer_to(reply, **how)
    assert answer.error is None
    return [chunk.num_tokens for chunk in answer.chunks]


def _usage(num_tokens: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": 7, "completion_tokens": num_tokens}}


def test_text_ids_usage_and_reason_to_finish() -> None:
    pieces = [Piece(0.1, "Grü", beside={"token_ids": [5, 6]}), Piece(0.1, "ße", beside={"token_ids": [9]})]

    answer = answer_to(chat_reply(pieces, 3, finish="length"))

    assert answer.error is None
    assert (answer.text, answer.token_ids, answer.finish_reason) == ("Grüße", (5, 6, 9), "length")
    assert (answer.prompt_tokens, answer.num_tokens, answer.counts) == (7, 3, None)


def test_tokens_of_a_chunk_from_usage_with_every_chunk() -> None:
    assert _tokens(chat_reply(_pieces(_usage(1), _usage(4), _usage(6)), 6)) == [1, 3, 2]


def test_tokens_of_a_chunk_from_llama_cpp_timings() -> None:
    timings = [{"timings": {"predicted_n": n}} for n in (1, 5, 6)]

    assert _tokens(chat_reply(_pieces(*timings), 6)) == [1, 4, 1]


def test_tokens_of_a_chunk_from_logprobs() -> None:
    pieces = [Piece(0.25, "ab", beside={"logprobs": {"content": [{}] * n}}) for n in (2, 1)]

    assert _tokens(chat_reply(pieces, 3)) == [2, 1]


def test_without_such_hints_the_first_chunk_is_one_token_and_the_others_share_the_rest() -> None:
    assert _tokens(chat_reply(_pieces({}, {}, {}), 8)) == [1, 3, 4]
    assert _tokens(chat_reply([Piece(0.25, "abc")], 8)) == [8]
    assert _tokens(chat_reply(_pieces({}, {}, {}), 2)) == [1, 0, 1]  # a token whose text came in two events
    assert _tokens(chat_reply(_pieces({}, {}, {}), 0)) == [0, 0, 0]  # as the usage has it


def test_hints_that_not_every_chunk_has_are_not_trusted() -> None:
    answer = answer_to(chat_reply([Piece(0.25, "a", beside={"token_ids": [1]}), Piece(0.25, "bc")], 3))

    assert answer.token_ids is None
    assert [chunk.num_tokens for chunk in answer.chunks] == [1, 2]


def test_ids_that_do_not_agree_with_the_usage_are_not_compared() -> None:
    answer = answer_to(chat_reply([Piece(0.25, "a", beside={"token_ids": [1]})], 3))

    assert (answer.token_ids, answer.num_tokens) == (None, 3)


def test_ids_replace_a_usage_that_is_missing() -> None:
    whole = chat_reply([Piece(0.25, "ab", beside={"token_ids": [1, 2]})], 2)
    without_usage = Reply([part for part in whole.parts if b"usage" not in part.data])

    answer = answer_to(without_usage)

    assert (answer.error, answer.token_ids, answer.num_tokens) == (None, (1, 2), 2)


def test_reasoning_is_part_of_the_answer() -> None:
    deltas = [{"reasoning_content": "hm "}, {"reasoning": "so "}, {"content": "yes", "reasoning_content": None}]
    chunks = [event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas]
    end = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **_usage(3)})

    answer = answer_to(Reply([Part(0.5, chunk) for chunk in (*chunks, end)]))

    assert (answer.error, answer.text, answer.ttft, len(answer.chunks)) == (None, "hm so yes", 0.5, 3)


def test_the_shape_of_completions() -> None:
    def text(value: str, **more: Any) -> bytes:
        return event({"object": "text_completion", "choices": [{"index": 0, "text": value, **more}]})

    usage = event({"choices": [], **_usage(2)})
    reply = Reply([Part(0.5, text("a")), Part(0.5, text("b", finish_reason="stop")), Part(0.0, usage)])

    answer = answer_to(reply, api="completions")

    assert (answer.error, answer.text, answer.finish_reason) == (None, "ab", "stop")
    assert [chunk.time for chunk in answer.chunks] == [0.5, 1.0]


@pytest.mark.parametrize("num_tokens", [0, 1])
def test_an_answer_without_text_ends_when_its_finish_comes(num_tokens: int) -> None:
    answer = answer_to(chat_reply([Piece(0.5, "")], num_tokens))

    assert (answer.error, answer.text, answer.ttft, answer.num_tokens) == (None, "", 0.5, num_tokens)
    assert [chunk.num_tokens for chunk in answer.chunks] == [num_tokens]


def test_other_choices_are_not_read() -> None:
    other = event({"choices": [{"index": 1, "delta": {"content": "not this"}, "finish_reason": "length"}]})
    whole = chat_reply([Piece(0.25, "this")], 1)

    answer = answer_to(Reply([whole.parts[0], Part(0.0, other), *whole.parts[1:]]))

    assert (answer.text, answer.finish_reason) == ("this", "stop")


def test_speculation_as_vllm_tells_it_with_an_answer() -> None:
    told = {
        "num_spec_steps": 3,
        "num_accepted_draft_tokens": 4,
        "num_draft_tokens": 8,
        "acceptance_histogram": [1, 0, 2, 0],
        "acceptance_histogram_by_draft_length": {"2": [0, 0, 1], "3": [1, 0, 1, 0]},
    }

    answer = answer_to(chat_reply(_pieces({}, {}, {}), 10, metrics={"speculative_decoding": told}))

    assert answer.counts == Counts(
        num_target_steps=5,
        num_emitted=9,
        num_drafts=3,
        num_draft_tokens=8,
        num_accepted_tokens=4,
        per_position=(2, 2),
        drafted={0: 2, 2: 1, 3: 2},
    )


@pytest.mark.parametrize("in_array", [False, True])
def test_speculation_as_sglang_tells_it_with_an_answer(in_array: bool) -> None:
    told = {
        "spec_verify_ct": 4,
        "spec_num_correct_drafts": 5,
        "spec_num_proposed_drafts": 12,
        "spec_correct_drafts_histogram": [1, 1, 2],
    }
    extension = {"spec_tokens_details": [told] if in_array else told}

    answer = answer_to(chat_reply(_pieces({}, {}, {}), 10, sglext=extension))

    assert answer.counts == Counts(4, 9, 4, 12, 5, (3, 2))


@pytest.mark.parametrize("drafted", [{}, {"draft_n": 8, "draft_n_accepted": 6}])
def test_speculation_as_llama_cpp_tells_it_with_an_answer(drafted: dict[str, int]) -> None:
    answer = answer_to(chat_reply(_pieces({}, {}, {}), 10, timings={"predicted_n": 10, **drafted}))

    accepted = drafted.get("draft_n_accepted", 0)
    assert answer.counts == Counts(9 - accepted, 9, 0, drafted.get("draft_n", 0), accepted)


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"temperature": 1.0, "n": 2}, "n is 2; a benchmark of a server cannot send it"),
        (
            {"response_format": {"type": "json_object"}},
            "response_format is ResponseFormat(kind='json_object', source=''); a benchmark of a server cannot send it",
        ),
    ],
)
def test_a_question_that_cannot_be_sent_is_an_error_of_its_own(params: dict[str, Any], error: str) -> None:
    answer = answer_to(chat_reply([], 0), ask(**params))

    assert answer.error == error
