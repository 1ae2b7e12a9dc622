"""Asks of scripted endpoints, in virtual time and over loopback."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from paceline import SamplingParams
from paceline.bench.base import Answer, Ask, Message, Mode, Report, Session
from paceline.bench.targets.endpoint import EndpointOptions, EndpointTarget
from paceline.testing.endpoint import Reply, ScriptedEndpoint
from paceline.testing.virtual_time import run_in_virtual_time

T = TypeVar("T")

MODE = Mode("endpoint", proposer="endpoint")
ADDRESS = "http://scripted"


def ask(prompt: str = "Say it.", prediction: str | None = None, **params: Any) -> Ask:
    return Ask((Message("user", prompt),), SamplingParams(**params), prediction)


async def connected(endpoint: ScriptedEndpoint, **options: Any) -> EndpointTarget:
    """A target inside the process, whose clock is the loop's."""
    clock = asyncio.get_running_loop().time
    chosen = replace(EndpointOptions(clock=clock, transport=endpoint.transport()), **options)
    return await EndpointTarget.connect({MODE.name: ADDRESS}, chosen)


def in_session(endpoint: ScriptedEndpoint, work: Callable[[Session], Awaitable[T]], **options: Any) -> T:
    """What `work` makes of a session with `endpoint`, in virtual time."""

    async def main() -> T:
        target = await connected(endpoint, **options)
        async with target.session(MODE) as session:
            return await work(session)

    return run_in_virtual_time(main())


def answer_to(reply: Reply, asked: Ask | None = None, owner: str = "scripted", **options: Any) -> Answer:
    endpoint = ScriptedEndpoint([reply], owner=owner)
    return in_session(endpoint, lambda session: session.answer(asked or ask()), **options)


def sent_to(owner: str, asked: Ask, **options: Any) -> Mapping[str, Any]:
    """The JSON that an ask sends to a server of that owner."""
    endpoint = ScriptedEndpoint(owner=owner)
    in_session(endpoint, lambda session: session.answer(asked), **options)
    body = endpoint.asked[-1].body
    assert body is not None
    return body


def reported(endpoint: ScriptedEndpoint, num_answers: int) -> tuple[list[Answer], Report]:
    """Answers, one after the other, and what the session reports of them."""

    async def work(session: Session) -> tuple[list[Answer], Report]:
        answers = [await session.answer(ask()) for _ in range(num_answers)]
        return answers, await session.report()

    return in_session(endpoint, work)
