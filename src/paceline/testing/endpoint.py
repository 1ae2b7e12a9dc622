"""A server with OpenAI's streaming interface that answers by a script, for tests of what asks such servers.

It is reached over loopback (`serve`), with real time and real connections, or inside the process (`transport`), where
in a `VirtualTimeLoop` every delay is exact and costs no time.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from httpx2 import MockTransport, Request, Response

EVENT_STREAM = "text/event-stream"

Ending = Literal["end", "break", "hang", "deaf", "mute"]


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a body, sent `delay` seconds after the part before, the first one after the request."""

    delay: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `ending`: "break" drops the connection behind the last part, "hang" sends nothing more, "deaf"
    ends well and then drops the connection, which it promised to keep, at the next request; "mute" drops it at once."""

    parts: Sequence[Part]
    status: int = 200
    content_type: str = EVENT_STREAM
    ending: Ending = "end"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came, with its headers' names in lower case; `body` is None for GET."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Piece:
    """What one event of an answer adds. `beside`: fields of the choice, such as `token_ids`; `around`: fields of the
    event, such as `usage` or `timings`."""

    delay: float
    text: str
    beside: Mapping[str, Any] = field(default_factory=dict)
    around: Mapping[str, Any] = field(default_factory=dict)


def event(value: object) -> bytes:
    """A server-sent event with `value` as its JSON."""
    return f"data: {json.dumps(value)}\n\n".encode()


def json_page(value: object, status: int = 200) -> Reply:
    return Reply((Part(0.0, json.dumps(value).encode()),), status, "application/json")


def text_page(text: str) -> Reply:
    return Reply((Part(0.0, text.encode()),), content_type="text/plain; version=0.0.4")


def chat_reply(pieces: Iterable[Piece], num_tokens: int, *, finish: str = "stop", **last: object) -> Reply:
    """An answer to `/v1/chat/completions`: the role, `pieces`, the finish and the usage. `last`: fields of the event
    that tells the usage."""
    parts = [Part(0.0, event(_chunk({"role": "assistant", "content": ""}, {}, {})))]
    for piece in pieces:
        parts.append(Part(piece.delay, event(_chunk({"content": piece.text}, piece.beside, piece.around))))
    usage = {"prompt_tokens": 7, "completion_tokens": num_tokens, "total_tokens": 7 + num_tokens}
    parts.append(Part(0.0, event(_chunk({}, {"finish_reason": finish}, {}))))
    parts.append(Part(0.0, event({"object": "chat.completion.chunk", "choices": [], "usage": usage, **last})))
    parts.append(Part(0.0, b"data: [DONE]\n\n"))
    return Reply(parts)


def _chunk(delta: Mapping[str, Any], beside: Mapping[str, Any], around: Mapping[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None, **beside}
    return {"object": "chat.completion.chunk", "choices": [choice], **around}


class ScriptedEndpoint:
    """`replies` go to the POSTs in the order in which they come, to all paths alike; one too many is answered with
    status 500. `pages`: what GET answers at a path, one reply after the other and the last one from then on; status 404
    for others. `/v1/models` is there unless `pages` has another: it lists `model`, owned by `owner`.
    """

    def __init__(
        self,
        replies: Iterable[Reply] = (),
        pages: Mapping[str, Sequence[Reply]] | None = None,
        *,
        model: str = "scripted",
        owner: str = "scripted",
    ) -> None:
        models = {"object": "list", "data": [{"id": model, "object": "model", "owned_by": owner}]}
        self._replies = iter(replies)
        self._pages = {"/v1/models": [json_page(models)]} | {path: list(each) for path, each in (pages or {}).items()}
        self.asked: list[Asked] = []
        self.num_abandoned = 0
        """Connections that the other side closed while an answer was being sent."""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Listen on a free port of this machine alone; gives the address."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    def transport(self) -> "MockTransport":
        """For an `httpx2` client: every address leads here. Needs the extra `bench`."""
        from httpx2 import MockTransport

        return MockTransport(self._handle)

    def _reply(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if asked.body is not None:
            return next(self._replies, json_page({"error": {"message": "the script has no reply left"}}, 500))
        replies = self._pages.get(asked.path)
        if not replies:
            return json_page({"error": {"message": f"there is no {asked.path}"}}, 404)
        return replies.pop(0) if len(replies) > 1 else replies[0]

    async def _handle(self, request: "Request") -> "Response":
        from httpx2 import RemoteProtocolError, Response

        body = json.loads(request.content) if request.method == "POST" else None
        reply = self._reply(Asked(request.url.path, dict(request.headers), body))
        if reply.ending == "mute":
            raise RemoteProtocolError("the connection was dropped")
        return Response(reply.status, headers={"content-type": reply.content_type}, content=_streamed(reply))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await _read(reader)) is not None:
                ending = await self._send(self._reply(asked), reader, writer)
                if ending == "deaf":
                    await reader.read(1)
                if ending != "end":
                    break
        except ConnectionError:
            self.num_abandoned += 1
        finally:
            writer.close()

    async def _send(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Ending:
        if reply.ending == "mute":
            return reply.ending
        head = f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\ncontent-type: {reply.content_type}"
        writer.write(f"{head}\r\nserver: scripted\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        for part in reply.parts:
            await asyncio.sleep(part.delay)
            writer.write(b"%x\r\n%b\r\n" % (len(part.data), part.data) if part.data else b"")
            await writer.drain()
        if reply.ending == "hang":
            await reader.read()  # until the other side has had enough
            self.num_abandoned += 1
        if reply.ending in ("end", "deaf"):
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return reply.ending


async def _streamed(reply: Reply) -> AsyncIterator[bytes]:
    from httpx2 import RemoteProtocolError

    for part in reply.parts:
        await asyncio.sleep(part.delay)
        yield part.data
    if reply.ending == "hang":
        await asyncio.get_running_loop().create_future()
    if reply.ending == "break":
        raise RemoteProtocolError("the connection was dropped")


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    """The next request of a connection, None where the other side closed it."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    request, *lines = head.rstrip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, path, _ = request.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(path, headers, json.loads(body) if method == "POST" else None)
