"""Live updates of open pages (ruling M5)."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import httpx
import pytest

from bridge.http.dashboard.frame import live as frame
from bridge.machine import token
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.dashboard.surfer import Surfer
from tests.waiting import soon

pytestmark = pytest.mark.ruling("M5")

Listen = Callable[[Service], Live]


async def messages(answer: httpx.Response) -> AsyncIterator[dict[str, str]]:
    """Yield each content message as its fields; several `data` lines are one text."""
    message: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if line == "" and message:
            if message.get("event") != "waiting":
                yield message
            message = {}
        elif name:
            message[name] = f"{message[name]}\n{value}" if name in message else value


async def _until_told(stream: AsyncIterator[dict[str, str]], words: str) -> None:
    """Wait for a message with these words; a message about an outage may come first."""
    while words not in (await anext(stream))["data"]:
        pass


async def test_a_change_of_the_store_reaches_an_open_page(service: Service, listening: Listen) -> None:
    live = listening(service)
    async with Surfer(service, live.url, httpx.AsyncHTTPTransport()) as ann:
        await ann.enter()
        async with ann.client.stream("GET", "/ui/live/", timeout=None) as answer:
            stream = messages(answer)
            assert "retry" in await soon(anext(stream))
            assert seeds.ROOT not in (await soon(anext(stream)))["data"]
            seeds.paused(service)
            await soon(_until_told(stream, seeds.ROOT))


async def test_a_stream_that_was_cut_off_says_only_what_is_new(service: Service, listening: Listen) -> None:
    live = listening(service)
    async with Surfer(service, live.url, httpx.AsyncHTTPTransport()) as ann:
        await ann.enter()
        async with ann.client.stream("GET", "/ui/live/", timeout=None) as answer:
            stream = messages(answer)
            await soon(anext(stream))
            seen = (await soon(anext(stream)))["id"]
        async with ann.client.stream("GET", "/ui/live/", timeout=None, headers={"last-event-id": seen}) as answer:
            stream = messages(answer)
            await soon(anext(stream))
            seeds.paused(service)
            first = await soon(anext(stream))
            if seeds.ROOT not in first["data"]:
                await soon(_until_told(stream, seeds.ROOT))
    assert first["id"] != seen


async def test_a_stream_ends_with_its_session(service: Service, listening: Listen) -> None:
    live = listening(service)
    async with Surfer(service, live.url, httpx.AsyncHTTPTransport()) as ann:
        await ann.enter()
        async with ann.client.stream("GET", "/ui/live/", timeout=None) as answer:
            stream = messages(answer)
            await soon(anext(stream))
            await soon(anext(stream))
            token.rotate(service.home)
            seeds.paused(service)
            while (await soon(anext(stream))).get("event") != "over":
                pass


async def test_every_page_says_which_part_is_gone(ann: Surfer) -> None:
    shown = await ann.open("/ui/")
    assert "Temporal does not answer" in shown.words
    assert "No worker runs on this machine" in shown.words
    assert "service daemon start" in shown.words


@pytest.mark.ruling("N8")
async def test_one_session_cannot_hold_every_connection(
    service: Service, listening: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest page makes room and is notified; another session has streams of its own."""
    monkeypatch.setattr(frame, "MOST", 2)
    live = listening(service)
    async with (
        Surfer(service, live.url, httpx.AsyncHTTPTransport()) as ann,
        Surfer(service, live.url, httpx.AsyncHTTPTransport()) as bob,
        AsyncExitStack() as stack,
    ):
        await ann.enter()
        await bob.enter()
        pieces = []
        for surfer in (bob, ann, ann, ann):
            answer = await stack.enter_async_context(surfer.client.stream("GET", "/ui/live/", timeout=None))
            pieces.append(messages(answer))
            await soon(anext(pieces[-1]))
            await soon(anext(pieces[-1]))
        crowded = [piece async for piece in pieces[1]]
        assert crowded[-1] == {"event": "crowded", "data": "2"}
        seeds.paused(service)
        for piece in (pieces[0], pieces[2], pieces[3]):
            await soon(_until_told(piece, seeds.ROOT))
