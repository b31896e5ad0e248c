"""The desk's workflow: turns, timers, wake-ups by a ring, and an end when nothing is due (ruling L8)."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from tests.temporal.github_office import Handle, Office, at_desk
from tests.waiting import soon, until
from workflows.temporal.github_desk import GithubDesk, Push, Turn

AtWork = Callable[[Office], AbstractAsyncContextManager[Handle]]


@pytest.fixture
def at_work(client: Client, queue: str) -> AtWork:
    """Run the desk with an office, on queues of the test's own."""
    return lambda office: at_desk(client, queue, office)


@pytest.mark.ruling("L8")
async def test_it_ends_when_nothing_is_due_and_says_what_it_did(at_work: AtWork) -> None:
    office = Office([Turn(says="wrote", again=0.05), Turn(says="nothing to do")])
    async with at_work(office) as desk:
        assert await soon(desk.result()) == "nothing to do"
    assert office.taken == 2


@pytest.mark.ruling("L8")
async def test_half_an_hour_is_waited_for_by_a_timer_and_a_ring_ends_it(at_work: AtWork) -> None:
    """No slot is held: while it waits, the history ends with the timer."""
    office = Office([Turn(says="waits: GitHub asks to wait", again=1800.0), Turn(says="done")])
    async with at_work(office) as desk:
        await until(lambda: _waits(desk))
        assert office.taken == 1
        assert (await _events(desk))[-1] == "EVENT_TYPE_TIMER_STARTED"
        await desk.signal(GithubDesk.ring)
        assert await soon(desk.result()) == "done"


async def _events(desk: Handle) -> list[str]:
    return [EventType.Name(each.event_type) async for each in desk.fetch_history_events()]


async def _waits(desk: Handle) -> bool:
    return "EVENT_TYPE_TIMER_STARTED" in await _events(desk)


@pytest.mark.ruling("L8")
async def test_a_turn_that_fails_is_taken_again(at_work: AtWork) -> None:
    office = Office([RuntimeError("a bug"), Turn(says="done")])
    async with at_work(office) as desk:
        assert await soon(desk.result()) == "done"


@pytest.mark.ruling("L9")
async def test_a_push_that_fails_holds_up_nothing(at_work: AtWork) -> None:
    office = Office([Turn(pushes=(Push(fact_id="root-publish", host="here"),), again=0.05), Turn(says="done")])
    async with at_work(office) as desk:
        assert await soon(desk.result()) == "done"
    assert office.pushed == ["root-publish"]


async def test_whatever_is_sent_as_a_ring_is_one(at_work: AtWork) -> None:
    office = Office([Turn(says="waits", again=600.0), Turn(says="done")])
    async with at_work(office) as desk:
        await until(lambda: _waits(desk))
        await asyncio.gather(desk.signal("ring", {"odd": [1]}), desk.signal("ring"))
        assert await soon(desk.result()) == "done"
