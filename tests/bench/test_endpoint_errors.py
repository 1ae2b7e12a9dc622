"""Whatever a server does wrong is the answer's error, a sentence, and never an exception."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from endpoint_desk import ADDRESS, MODE, answer_to, ask, in_session

from paceline.bench.base import Answer, Mode, Session
from paceline.bench.targets.endpoint import EndpointOptions, EndpointTarget
from paceline.bench.targets.json_fields import EndpointError
from paceline.errors import PacelineError, UsageError
from paceline.testing.endpoint import (
    Part,
    Piece,
    Reply,
    ScriptedEndpoint,
    chat_reply,
    event,
    json_page,
    text_page,
)


def _whole() -> Reply:
    return chat_reply([Piece(0.0, "ab"), Piece(0.0, "cd")], 2)


def _without(word: bytes) -> Reply:
    return Reply([part for part in _whole().parts if word not in part.data])


def _chunk(choice: object) -> Reply:
    return Reply([Part(0.0, event({"choices": [choice]}))])


REFUSED = json_page({"error": {"message": "the prompt is\ntoo long", "code": 400}}, 400)
WRONG: dict[str, tuple[Reply, str]] = {
    "refused": (REFUSED, "the server answered 400 Bad Request: the prompt is too long"),
    "detail": (json_page({"detail": "no such model"}, 404), "the server answered 404 Not Found: no such model"),
    "page": (replace(text_page("<h1>Bad</h1>"), status=502), "the server answered 502 Bad Gateway: <h1>Bad</h1>"),
    "empty": (Reply([], 500), "the server answered 500 Internal Server Error"),
    "redirect": (Reply([], 302), "the server answered 302 Found"),
    "no stream": (json_page({"choices": []}), "the server answered with application/json and no stream of events"),
    "event": (
        Reply([*_whole().parts[:2], Part(0.0, event({"error": {"message": "out of memory"}}))]),
        "the server broke off: out of memory",
    ),
    "error's name": (Reply([Part(0.0, event({"error": "overloaded"}))]), "the server broke off: overloaded"),
    "abort": (chat_reply([Piece(0.0, "ab")], 1, finish="abort"), "the server broke off: finish_reason 'abort'"),
    "garbage": (Reply([Part(0.0, b"data: {oops\n\n")]), "an event of the stream is no JSON: '{oops'"),
    "depth": (Reply([Part(0.0, b"data: " + b"[" * 200_000 + b"\n\n")]), "an event of the stream is no JSON: '[[["),
    "few": (
        chat_reply([Piece(0.0, "ab", beside={"token_ids": [1, 2]}), Piece(0.0, "c", beside={"token_ids": [3]})], 2),
        "the server's usage is 2 tokens, and its events hold 3",
    ),
    "many": (chat_reply([Piece(0.0, "ab")], 10**400), "the server sent more than 1,000,000,000,000,000 as 'completion"),
    "histogram": (
        chat_reply([Piece(0.0, "ab")], 1, metrics={"speculative_decoding": {"acceptance_histogram": {"9" * 12: 1}}}),
        "the server tells 'acceptance_histogram' of '999999999999'; expected an integer below 10,000",
    ),
    "charset": (
        replace(_whole(), content_type="text/event-stream; charset=utf-16"),
        f"what goes to {ADDRESS}/v1/chat/completions or comes from there is no sound text",
    ),
    "array": (Reply([Part(0.0, b"data: [1]\n\n")]), "an event of the stream is '[1]'; expected a JSON object"),
    "choices": (_chunk(5), "the server sent 5 in 'choices'; expected objects"),
    "delta": (_chunk({"delta": "x"}), "the server sent 'x' as 'delta'; expected an object"),
    "content": (_chunk({"delta": {"content": 7}}), "the server sent 7 as 'content'; expected a string"),
    "ids": (_chunk({"token_ids": [-1]}), "the server sent -1 as 'token_ids'; expected an integer of at least 0"),
    "finish": (_without(b'"stop"'), "the stream ended before the answer did: no event told a finish_reason"),
    "usage": (_without(b"usage"), "the server told no usage: the answer's tokens cannot be counted"),
    "nothing": (Reply([]), "the stream ended before the answer did: no event told a finish_reason"),
    "broken": (replace(_whole(), ending="break", parts=_whole().parts[:2]), f"{ADDRESS}/v1/chat/completions broke off"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_server_does_wrong_is_said(name: str) -> None:
    reply, expected = WRONG[name]

    answer = answer_to(reply)

    assert answer.error is not None
    assert answer.error.startswith(expected)


def test_what_came_before_the_error_is_kept() -> None:
    answer = answer_to(WRONG["event"][0])

    assert (answer.text, answer.num_tokens, answer.finish_reason) == ("ab", 1, "error")


def test_a_session_goes_on_after_an_error() -> None:
    async def work(session: Session) -> list[Answer]:
        return [await session.answer(ask()) for _ in range(2)]

    answers = in_session(ScriptedEndpoint([REFUSED, _whole()]), work)

    assert [answer.text for answer in answers] == ["", "abcd"]
    assert answers[1].error is None


def test_a_server_that_hangs_is_given_up() -> None:
    answer = answer_to(replace(_whole(), ending="hang"), timeout=30.0)

    assert answer.error == "the answer took longer than 30 s"
    assert answer.text == "abcd"


async def _over_loopback(endpoint: ScriptedEndpoint, work: Callable[[Session], "asyncio.Future[Answer]"]) -> Answer:
    async with endpoint.serve() as address:
        target = await EndpointTarget.connect({MODE.name: address})
        async with target.session(MODE) as session:
            return await work(session)


def test_an_answer_over_a_real_connection() -> None:
    endpoint = ScriptedEndpoint([_whole()])

    answer = asyncio.run(_over_loopback(endpoint, lambda session: asyncio.ensure_future(session.answer(ask()))))

    assert (answer.error, answer.text, answer.num_tokens) == (None, "abcd", 2)
    assert 0 < answer.ttft <= answer.e2e


def test_a_connection_that_breaks_off() -> None:
    endpoint = ScriptedEndpoint([replace(_whole(), ending="break")])

    answer = asyncio.run(_over_loopback(endpoint, lambda session: asyncio.ensure_future(session.answer(ask()))))

    assert answer.error is not None
    assert "/v1/chat/completions broke off: " in answer.error


def test_a_kept_connection_that_the_server_drops_is_no_error() -> None:
    """llama.cpp's server promises to keep a connection and closes it behind every stream."""
    endpoint = ScriptedEndpoint([replace(_whole(), ending="deaf") for _ in range(4)])

    async def main() -> list[Answer]:
        async with endpoint.serve() as address:
            target = await EndpointTarget.connect({MODE.name: address})
            async with target.session(MODE) as session:
                first = await asyncio.gather(session.answer(ask()), session.answer(ask()))
                return [*first, await session.answer(ask()), await session.answer(ask())]

    answers = asyncio.run(main())

    assert [(answer.error, answer.text) for answer in answers] == [(None, "abcd")] * 4


def test_a_new_connection_that_the_server_drops_is_an_error() -> None:
    endpoint = ScriptedEndpoint([replace(_whole(), ending="deaf"), Reply([], ending="mute"), _whole()])

    async def main() -> list[Answer]:
        async with endpoint.serve() as address:
            target = await EndpointTarget.connect({MODE.name: address})
            async with target.session(MODE) as session:
                return [await session.answer(ask()) for _ in range(3)]

    answers = asyncio.run(main())

    assert answers[1].error is not None
    assert "/v1/chat/completions broke off: " in answers[1].error
    assert [answer.error for answer in (answers[0], answers[2])] == [None, None]


def test_cancelling_an_answer_closes_its_connection() -> None:
    endpoint = ScriptedEndpoint([replace(_whole(), ending="hang")])

    async def main() -> None:
        async with endpoint.serve() as address:
            target = await EndpointTarget.connect({MODE.name: address})
            async with target.session(MODE) as session:
                answering = asyncio.ensure_future(session.answer(ask()))
                while endpoint.asked[-1].body is None:
                    await asyncio.sleep(0)
                answering.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await answering
                while not endpoint.num_abandoned:
                    await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_server_that_goes_away_between_answers() -> None:
    endpoint = ScriptedEndpoint([_whole()])

    async def main() -> Answer:
        async with endpoint.serve() as address:
            target = await EndpointTarget.connect({MODE.name: address})
        with pytest.warns(match="speculation of a block is not told: no connection to"):
            async with target.session(MODE) as session:
                return await session.answer(ask())

    answer = asyncio.run(main())

    assert answer.error is not None
    assert answer.error.startswith("no connection to http://127.0.0.1:")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:8000", "expected http://HOST:PORT"),
        ("ftp://host", "expected http://HOST:PORT"),
        ("http://", "expected http://HOST:PORT"),
        ("http://user:secret@host", "holds a password"),
        ("http://host?key=1", "holds a password, a query"),
        ("http://host:port", "the endpoint of 'endpoint' is 'http://host:port': "),
    ],
)
def test_an_address_out_of_range(address: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected) as raised:
        asyncio.run(EndpointTarget.connect({MODE.name: address}))

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (EndpointOptions(api="chats"), "the interface is 'chats'; expected chat or completions"),  # type: ignore[arg-type]
        (EndpointOptions(timeout=0), "timeout is 0; expected seconds above 0"),
        (EndpointOptions(key_variable="NO_SUCH_KEY"), "environment variable 'NO_SUCH_KEY', which is not set"),
    ],
)
def test_an_option_out_of_range(options: EndpointOptions, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        asyncio.run(EndpointTarget.connect({MODE.name: ADDRESS}, options))


def test_a_client_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)

    with pytest.raises(PacelineError, match=r"pip install 'paceline\[bench\]'"):
        asyncio.run(EndpointTarget.connect({MODE.name: ADDRESS}))


def test_a_server_that_is_not_there() -> None:
    async def main() -> None:
        async with ScriptedEndpoint().serve() as address:
            pass
        await EndpointTarget.connect({MODE.name: address})

    with pytest.raises(EndpointError, match="no connection to http"):
        asyncio.run(main())


def test_a_server_that_lists_no_model() -> None:
    endpoint = ScriptedEndpoint(pages={"/v1/models": [json_page({"data": []})]})

    with pytest.raises(EndpointError, match="lists no model; name one"):
        in_session(endpoint, lambda session: session.answer(ask()))


def test_a_mode_without_an_endpoint() -> None:
    async def main() -> None:
        options = EndpointOptions(transport=ScriptedEndpoint().transport())
        target = await EndpointTarget.connect({MODE.name: ADDRESS}, options)
        async with target.session(Mode("off")):
            pass

    with pytest.raises(UsageError, match="no endpoint was given for the mode 'off'; there are endpoint"):
        asyncio.run(main())


def test_a_key_that_no_header_can_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_KEY", "sécret")
    with pytest.raises(UsageError, match="'ODD_KEY' holds what no header can carry") as raised:
        asyncio.run(EndpointTarget.connect({MODE.name: ADDRESS}, EndpointOptions(key_variable="ODD_KEY")))
    assert "cret" not in str(raised.value)
