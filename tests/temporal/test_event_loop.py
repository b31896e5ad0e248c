"""Orders that arrive together are reduced in order of arrival (ruling F4: the first one wins)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from workflows.temporal.event_loop import Loop

pytestmark = pytest.mark.ruling("F4")

Ordered = Callable[[], Awaitable[list[str]]]


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> Ordered:
    """Return the inbox after each mark of four orders that end out of order."""

    async def play() -> list[str]:
        marks = {name: asyncio.get_running_loop().create_future() for name in "abcd"}

        async def mark(summary: str) -> None:
            await marks[summary]

        monkeypatch.setattr("workflows.temporal.writes.mark", mark)
        monkeypatch.setattr("temporalio.workflow.deprecate_patch", lambda _: None)
        events: Loop[str, str] = Loop(lambda _: [])
        events.spawn("a job", asyncio.sleep(3600), lambda _: None)
        for name in marks:
            events.order(name, name)
        seen = []
        for name in "cadb":
            marks[name].set_result(None)
            for _ in range(5):
                await asyncio.sleep(0)
            seen.append("".join(events.inbox))
        events.stop("a job")
        return seen

    return play


async def test_whichever_mark_ends_first(ordered: Ordered) -> None:
    assert await ordered() == ["", "a", "a", "abcd"]


async def test_an_order_waits_for_nothing_where_nothing_goes_on() -> None:
    events: Loop[str, str] = Loop(lambda _: [])
    events.order("a", "a")
    events.order("b", "b")
    assert list(events.inbox) == ["a", "b"]
