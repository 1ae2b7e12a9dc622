"""An endpoint with scripted delays gives exactly the known times: in virtual time, so that nothing is ever late."""

import asyncio

from endpoint_desk import ask, in_session

from paceline.bench.base import Answer, Chunk, Session
from paceline.testing.endpoint import Piece, Reply, ScriptedEndpoint, chat_reply


def _counted(delay: float, text: str, *ids: int) -> Piece:
    return Piece(delay, text, beside={"token_ids": list(ids)})


def _steady(first: float, gap: float, num_tokens: int) -> Reply:
    """A token at `first`, then one every `gap` seconds."""
    pieces = [_counted(gap if i else first, f"w{i} ", i) for i in range(num_tokens)]
    return chat_reply(pieces, num_tokens, finish="length")


def test_ttft_tpot_and_chunk_times_are_those_of_the_script() -> None:
    reply = chat_reply([_counted(0.5, "a", 1), _counted(0.25, "bcd", 2, 3, 4), _counted(0.125, "e", 5)], 5)

    answer = in_session(ScriptedEndpoint([reply]), lambda session: session.answer(ask()))

    assert answer.error is None
    assert answer.chunks == (Chunk(0.5, 1), Chunk(0.75, 3), Chunk(0.875, 1))
    assert (answer.ttft, answer.e2e) == (0.5, 0.875)
    assert answer.decode_seconds / answer.num_decoded == 0.09375  # 0.375 s for the 4 tokens behind the first


def test_times_count_from_the_request_and_not_from_the_session() -> None:
    async def second(session: Session) -> Answer:
        await session.answer(ask())
        await asyncio.sleep(3)
        return await session.answer(ask())

    answer = in_session(ScriptedEndpoint([_steady(1, 1, 4), _steady(0.5, 0.25, 3)]), second)

    assert [chunk.time for chunk in answer.chunks] == [0.5, 0.75, 1.0]


def test_goodput_of_answers_that_overlap() -> None:
    """Two at a time: of four answers two meet a TTFT of 0.5 s and a TPOT of 0.25 s, in the 4.5 s that all take."""
    script = [_steady(0.5, 0.25, 5), _steady(1, 0.25, 5), _steady(0.5, 0.125, 5), _steady(0.5, 0.5, 5)]

    async def work(session: Session) -> tuple[list[Answer], float]:
        loop = asyncio.get_running_loop()
        began, answers, left = loop.time(), list[Answer](), iter(range(len(script)))

        async def worker() -> None:
            for _ in left:
                answers.append(await session.answer(ask()))

        await asyncio.gather(worker(), worker())
        return answers, loop.time() - began

    answers, seconds = in_session(ScriptedEndpoint(script), work)
    good = [each for each in answers if each.ttft <= 0.5 and each.decode_seconds / each.num_decoded <= 0.25]

    assert [each.e2e for each in answers] == [1.5, 2.0, 1.0, 2.5]
    assert (len(good), seconds, len(good) / seconds) == (2, 4.5, 2 / 4.5)


def test_an_end_of_text_token_without_text_takes_its_time() -> None:
    """llama.cpp and vLLM count it in the usage; it came when the finish came."""
    timings = [{"timings": {"predicted_n": n}} for n in (1, 2)]
    reply = chat_reply([Piece(0.5, "a", around=timings[0]), Piece(0.5, "b", around=timings[1])], 3)

    answer = in_session(ScriptedEndpoint([reply]), lambda session: session.answer(ask()))

    assert answer.chunks == (Chunk(0.5, 1), Chunk(1.0, 1), Chunk(1.0, 1))
    assert answer.num_tokens == sum(chunk.num_tokens for chunk in answer.chunks)


def test_a_time_limit_is_of_the_whole_answer() -> None:
    """A server that sends something now and then cannot hold a run up."""
    answer = in_session(ScriptedEndpoint([_steady(0.5, 0.5, 100)]), lambda session: session.answer(ask()), timeout=2.25)

    assert answer.error == "the answer took longer than 2.25 s"
    assert [chunk.time for chunk in answer.chunks] == [0.5, 1.0, 1.5, 2.0]
