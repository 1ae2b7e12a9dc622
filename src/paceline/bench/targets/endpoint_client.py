"""HTTP as a benchmark needs it: JSON and text from a server's pages, and the events of a stream as they arrive."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from paceline.bench.targets.json_fields import EndpointError, decoded, error_message
from paceline.errors import PacelineError, UsageError

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport, AsyncClient, Response

CONNECT_SECONDS = 10.0
PAGE_SECONDS = 30.0
EVENT_STREAM = "text/event-stream"


def check_client() -> None:
    """Raise PacelineError where the HTTP client is missing."""
    try:
        import httpx2  # noqa: F401 (only whether it is there)
    except ImportError:
        raise PacelineError(
            "a benchmark of an endpoint needs httpx2, which is not here; install it with pip install 'paceline[bench]'"
        ) from None


def checked_address(name: str, address: str) -> str:
    """The root of a server, from an address with or without `/v1`; `name` is the mode's. Raises UsageError."""
    from httpx2 import URL, InvalidURL

    try:
        url = URL(address)
    except InvalidURL as error:
        raise UsageError(f"the endpoint of {name!r} is {address!r:.200}: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"the endpoint of {name!r} is {address!r:.200}; expected http://HOST:PORT or https://HOST")
    if url.userinfo or url.query or url.fragment:
        raise UsageError(
            f"the endpoint of {name!r} holds a password, a query or a fragment; expected http://HOST:PORT alone "
            "(a key comes from an environment variable)"
        )
    return str(url).rstrip("/").removesuffix("/v1").rstrip("/")


def key_headers(variable: str | None) -> Mapping[str, str]:
    """Raise UsageError for an environment variable that is not set or empty."""
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"the API key is to come from the environment variable {variable!r}, which is not set")
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"the API key in the environment variable {variable!r} holds what no header can carry")
    return {"Authorization": f"Bearer {key}"}


class EndpointClient:
    """Every failure is an EndpointError with a sentence. Connections are kept, and as many as there are requests: none
    waits for another one's."""

    def __init__(self, address: str, client: "AsyncClient") -> None:
        self._address = address
        self._client = client

    async def page(self, path: str) -> "Response | None":
        """What GET answers, None for a status other than 200."""
        with _told_plainly(self._address):
            async with self._sent("GET", path) as response:
                await response.aread()
        return response if response.status_code == 200 else None

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[str, None]:
        """The data of each event of the stream that a POST answers with; the caller sees to it that it ends."""
        from httpx2 import EventSource, Timeout

        patience = Timeout(None, connect=CONNECT_SECONDS)
        with _told_plainly(self._address + path):
            async with self._sent(
                "POST", path, json=dict(body), headers={"Accept": EVENT_STREAM}, timeout=patience
            ) as response:
                await _check_stream(response)
                async for event in EventSource(response):
                    if event.data:
                        yield event.data

    @asynccontextmanager
    async def _sent(self, method: str, path: str, **how: Any) -> "AsyncIterator[Response]":
        """A server may close a connection that it promised to keep, as llama.cpp's does behind every stream, and the
        next request then finds it closed or closing. What gets no word of a response over a kept connection is sent
        again, at last over a new one. That is part of the time that the request takes.
        """
        from httpx2 import NetworkError, RemoteProtocolError

        while True:
            request, trace = self._client.build_request(method, self._address + path, **how), _Trace()
            request.extensions = {**request.extensions, "trace": trace}
            try:
                response = await self._client.send(request, stream=True)
                break
            except (NetworkError, RemoteProtocolError):
                if not trace.is_of_kept_connection:
                    raise
        try:
            yield response
        finally:
            await response.aclose()


class _Trace:
    """What the client's transport tells of a request's way: its steps' names."""

    def __init__(self) -> None:
        self._has_connected = self._has_sent = False

    async def __call__(self, step: str, _: Mapping[str, Any]) -> None:
        self._has_connected |= step.startswith("connection.connect_")
        self._has_sent |= step.startswith("http11.send_request_headers")

    @property
    def is_of_kept_connection(self) -> bool:
        return self._has_sent and not self._has_connected


@asynccontextmanager
async def endpoint_client(
    address: str, headers: Mapping[str, str], transport: "AsyncBaseTransport | None"
) -> AsyncIterator[EndpointClient]:
    """`transport`: in place of the network, for tests."""
    from httpx2 import AsyncClient, Limits, Timeout

    async with AsyncClient(
        headers=dict(headers),
        timeout=Timeout(PAGE_SECONDS, connect=CONNECT_SECONDS),
        limits=Limits(max_connections=None, max_keepalive_connections=None),
        transport=transport,
    ) as client:
        yield EndpointClient(address, client)


async def _check_stream(response: "Response") -> None:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.status_code == 200 and kind == EVENT_STREAM:
        return
    body = (await response.aread()).decode(errors="replace")
    said = _said(body)
    if response.status_code != 200:
        status = f"{response.status_code} {response.reason_phrase}".strip()
        raise EndpointError(f"the server answered {status}" + (f": {said}" if said else ""))
    raise EndpointError(f"the server answered with {kind or 'no content type'} and no stream of events: {said}")


def _said(body: str) -> str:
    try:
        return error_message(decoded(body, "the answer"))
    except EndpointError:
        return " ".join(body.split())[:200]


@contextmanager
def _told_plainly(url: str) -> Iterator[None]:
    """The client's errors, some of which have no words, as ours."""
    from httpx2 import ConnectError, ConnectTimeout, HTTPError, SSEError, TimeoutException

    try:
        yield
    except (ConnectError, ConnectTimeout) as error:
        raise EndpointError(f"no connection to {url}: {error or 'it took too long'}") from None
    except TimeoutException:
        raise EndpointError(f"nothing came from {url} for too long") from None
    except SSEError as error:
        raise EndpointError(f"{url} sent no sound stream of events: {error}") from None
    except UnicodeError as error:
        raise EndpointError(f"what goes to {url} or comes from there is no sound text: {error}") from None
    except HTTPError as error:
        raise EndpointError(f"{url} broke off: {error or type(error).__name__}") from None
