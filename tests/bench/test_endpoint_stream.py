"""Server-sent events in every form that the standard allows, cut anywhere."""

import json

import pytest
from endpoint_desk import answer_to

from paceline.bench.base import Answer
from paceline.testing.endpoint import Part, Piece, Reply, chat_reply, event


def _body() -> bytes:
    ids = ([1], [2, 3])
    pieces = [Piece(0.0, text, beside={"token_ids": each}) for text, each in zip(("Grüße ", "日本"), ids, strict=True)]
    parts = chat_reply(pieces, 3).parts
    return b"".join(part.data for part in parts).replace(b"\\u65e5\\u672c", "日本".encode())


def _read(*data: bytes) -> Answer:
    return answer_to(Reply([Part(0.0, each) for each in data]))


def _same(answer: Answer) -> bool:
    return (answer.error, answer.text, answer.token_ids) == (None, "Grüße 日本", (1, 2, 3))


def test_a_stream_cut_at_any_byte() -> None:
    body = _body()
    assert "日".encode() in body  # as bytes of its own, not escaped

    wrong = [cut for cut in range(len(body)) if not _same(_read(body[:cut], body[cut:]))]

    assert wrong == []


def test_a_stream_of_single_bytes() -> None:
    body = _body()

    assert _same(_read(*(body[i : i + 1] for i in range(len(body)))))


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_other_line_ends(end: bytes) -> None:
    assert _same(_read(_body().replace(b"\n", end)))


def test_comments_pings_and_other_fields_are_passed_over() -> None:
    body = _body().replace(b"data:", b": ping\n\n: ping\nid: 7\nevent: message\nretry: 10\ndata:")

    assert _same(_read(body))


def test_data_of_several_lines_is_one_event() -> None:
    events = [json.loads(line[5:]) for line in _body().decode().splitlines() if line.startswith("data: {")]
    lines = ["".join(f"data:{line}\n" for line in json.dumps(event, indent=1).splitlines()) for event in events]

    assert _same(_read("".join(f"{line}\n" for line in lines).encode()))


def test_a_stream_without_done_is_whole_when_its_answer_is() -> None:
    assert _same(_read(_body().removesuffix(b"data: [DONE]\n\n")))


def test_half_a_surrogate_pair_is_joined_or_replaced() -> None:
    """A later turn's request must be able to hold it."""
    halves = [Part(0.0, event({"choices": [{"delta": {"content": text}}]})) for text in ("\ud83d", "\ude00", "\ud800")]
    rest = chat_reply([Piece(0.0, "!")], 4).parts

    assert answer_to(Reply([*halves, *rest])).text == "😀\ufffd!"
