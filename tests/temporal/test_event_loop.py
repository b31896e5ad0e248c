"""Orders that arrive together are reduced in order of arrival (ruling F4: the first one wins), and before what happens
later.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

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
        monkeypatch.setattr("temporalio.workflow.info", Task)
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


@dataclass
class Task:
    """The workflow task that goes on."""

    length: int = 1

    def get_current_history_length(self) -> int:
        return self.length


@pytest.mark.parametrize(("patched", "expected"), [(True, "xAyzB"), (False, "xyzAB")])
async def test_what_happens_after_an_order_was_taken_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, patched: bool, expected: str
) -> None:
    """Events of an order's own workflow task do not wait: the task may have been repeated because of the order."""
    marks, task = {name: asyncio.get_running_loop().create_future() for name in "AB"}, Task()

    async def mark(summary: str) -> None:
        await marks[summary]

    monkeypatch.setattr("workflows.temporal.writes.mark", mark)
    monkeypatch.setattr("temporalio.workflow.info", lambda: task)
    monkeypatch.setattr("temporalio.workflow.patched", lambda _: patched)
    events: Loop[str, str] = Loop(lambda _: [])
    events.spawn("a job", asyncio.sleep(3600), lambda _: None)
    events.order("A", "A")
    events.add("x")
    task.length += 1
    events.order("B", "B")
    events.add("y")
    events.add("z")
    for name in "BA":
        marks[name].set_result(None)
        for _ in range(5):
            await asyncio.sleep(0)
    events.stop("a job")
    assert "".join(events.inbox) == expected


async def test_an_order_waits_for_nothing_where_nothing_goes_on() -> None:
    events: Loop[str, str] = Loop(lambda _: [])
    events.order("a", "a")
    events.order("b", "b")
    assert list(events.inbox) == ["a", "b"]
