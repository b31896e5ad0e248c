"""The real desk on the real workflow while GitHub does not answer: a timer waits, and people are notified (ruling
L8).
"""

import time
from collections.abc import Callable

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from activities.settings.home import Home
from activities.store.github import account
from bridge.github.desk import Desk
from bridge.operations.health import doctor
from bridge.operations.health.findings import Level
from bridge.operations.orders import attention
from bridge.operations.service import Service
from tests.bridge.github.conftest import bind, working
from tests.github.fixtures import hub as hub
from tests.github.hub import Hub
from tests.temporal.server import runs
from tests.waiting import soon, until
from workflows.github.facts import fact_in
from workflows.temporal.github_desk import GithubDesk, desk_id, turns_queue

HALF_AN_HOUR = 1_800.0
Handle = WorkflowHandle[GithubDesk, str]

AWAY: dict[str, tuple[Callable[[Hub], object], str]] = {
    "primary": (lambda hub: hub.primary_limit("*", times=999, reset_in=HALF_AN_HOUR), "the quota is used up"),
    "secondary": (lambda hub: hub.secondary_limit("*", times=999, retry_after=HALF_AN_HOUR), "asks to wait"),
    "broken": (lambda hub: hub.fail("*", times=999, status=502), "GitHub answers 502"),
    "gone": (lambda hub: hub.down(), "GitHub cannot be reached"),
}


@pytest.mark.ruling("L8")
@pytest.mark.parametrize("how", AWAY)
async def test_half_an_hour_without_github_holds_no_slot_and_is_told(
    client: Client, queue: str, hub: Hub, home: Home, how: str
) -> None:
    goes, why = AWAY[how]
    async with working(home, hub) as office:
        store, number = office.session.store, hub.pull()
        bind(office, number)
        account.note(store, failures=8)  # after several failures the backoff is a quarter of an hour
        goes(hub)
        desk = Desk(office.session)
        flows = Worker(client, task_queue=queue, workflows=[GithubDesk], workflow_runner=runs(client))
        turns = Worker(client, task_queue=turns_queue(queue), activities=[desk.turn], max_concurrent_activities=1)
        async with flows, turns:
            handle = await client.start_workflow(
                GithubDesk.run, id=desk_id(office.service.settings.temporal.task_queue), task_queue=queue
            )
            for rings in range(3):
                await _waits(handle, rings + 1)
                assert await _pending(handle) == 0
                await handle.signal(GithubDesk.ring)
            await _waits(handle, 4)
            known = account.read(store)
            assert (known.blocked_until or 0.0) - time.time() > 600
            assert why in known.problem
            assert len(hub.requests) <= 1, "rung or not, it is left alone"
            account.note(store, failing_since=time.time() - HALF_AN_HOUR)
            _told(office.service, why)
            hub.up() if how == "gone" else hub.faults.before.clear()
            account.note(store, blocked_until=time.time() - 1)
            await handle.signal(GithubDesk.ring)
            await until(lambda: [fact_in(body) for body in hub.bodies(number)])
            await until(lambda: account.read(store).problem == "")
            assert attention.find(Service(home)).github == ()
            await handle.terminate()


def _told(service: Service, why: str) -> None:
    """Assert that `service attention` and `service doctor` report it."""
    (trouble,) = attention.find(service).github
    assert (trouble.about, why in trouble.says) == ("account", True)
    warned = [each.says for each in doctor.github(service) if each.level is Level.WARNING]
    assert any(why in each and "asked again at" in each for each in warned), warned


async def _waits(handle: Handle, times: int) -> None:
    """Wait for the timer's start, counted from the beginning."""

    async def seen() -> bool:
        kinds = [EventType.Name(each.event_type) async for each in handle.fetch_history_events()]
        return kinds[-1] == "EVENT_TYPE_TIMER_STARTED" and kinds.count("EVENT_TYPE_TIMER_STARTED") >= times

    await until(seen)


async def _pending(handle: Handle) -> int:
    return len((await soon(handle.describe())).raw_description.pending_activities)
