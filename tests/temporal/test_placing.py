"""Placement on a real server: each attempt goes to the host that is chosen for it, or waits for one (ruling Q4)."""

from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

from activities.host.context import Context
from activities.jobs.placing import Placer
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store.database import open_store
from activities.store.registry import host_rows, repo_rows
from tests.temporal.books import Books
from tests.temporal.host import Host, an_input, ended, script, serving, start
from tests.tree.simulator import delegation
from tests.waiting import soon
from workflows.model.orders import Kill
from workflows.model.settings import Bounds
from workflows.model.states import JobState, TaskState
from workflows.temporal import placing
from workflows.temporal.calls import agents_queue
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.messages import HeldUp, HostReport, TreeStart
from workflows.temporal.placing import Unplaced

pytestmark = pytest.mark.ruling("Q4")
LACKS = "no host has the label gpu"


@asynccontextmanager
async def second(client: Client, queue: str, host: Host) -> AsyncIterator[None]:
    """Run the worker of another host."""
    async with Worker(client, task_queue=agents_queue(f"{queue}-2"), activities=[host.run_job]):
        yield


def placed(queue: str) -> TreeStart:
    return TreeStart(input=an_input(), host=queue, placed=True)


async def test_each_attempt_runs_on_the_host_that_is_chosen_for_it(client: Client, queue: str) -> None:
    home, other = Host(script({"root": (delegation("a"),)})), Host(script({}))
    home.placements = [queue, f"{queue}-2", queue]
    async with serving(client, queue, home), second(client, queue, other):
        closed = await soon(ended(await start(client, queue, placed(queue))))
    assert closed.task_state is TaskState.DONE
    assert (home.names, other.names) == (["root", "normal"], ["a"])
    root, leg, _ = home.wanted
    assert (root.repo, root.runtime, root.host) == ("repo", "runtime_b", queue)
    assert (root.near, leg.near) == (queue, ""), "a coordinator prefers the host of its session"


@pytest.mark.ruling("G2", "B3")
@pytest.mark.parametrize("immediate", [False, True])
async def test_what_no_host_can_run_says_why_is_looked_at_again_and_ends_at_once(
    client: Client, queue: str, immediate: bool
) -> None:
    host = Host(script({}), placements=[""])
    async with serving(client, queue, host):
        tree = await start(client, queue, placed(queue))
        await host.until(lambda: len(host.wanted) > 2)
        held = HeldUp(job_id=tree.id, attempt=1, offer=1, reason="no host has the label gpu", next="service host list")
        await tree.signal(DelegationTree.report, HostReport(held_up=(held,)))
        await host.until(lambda: Books(host.written).jobs[tree.id].reason == held.reason)
        job = Books(host.written).jobs[tree.id]
        assert (job.state, job.next) == (JobState.QUEUED, held.next)
        await tree.signal(DelegationTree.kill, Kill(actor="ann", immediate=immediate))
        closed = await soon(ended(tree))
    Books(host.written).check(host.runs, Bounds())
    assert (closed.task_state, host.names) == (TaskState.CANCELLED, [])


async def test_it_is_placed_again_once_a_host_can_run_it(client: Client, queue: str) -> None:
    host = Host(script({}), placements=["", "", queue])
    async with serving(client, queue, host):
        closed = await soon(ended(await start(client, queue, placed(queue))))
    assert (closed.task_state, len(host.wanted)) == (TaskState.DONE, 3)


async def test_a_wait_for_a_host_is_told_once_however_often_it_is_looked_at(
    client: Client, queue: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = RetryPolicy(initial_interval=timedelta(milliseconds=20), maximum_interval=timedelta(milliseconds=50))
    monkeypatch.setattr(placing, "PLACE_RETRIES", quick)
    context = Context(home, Settings(), open_store(home))
    placer, looks = Placer(context), list[Unplaced]()
    repo_rows.put(context.store, "repo", "/shop", queue, require=("gpu",))
    see = partial(host_rows.see, context.store, queue, slots=1, started_at=1.0)
    see(labels=("runtime:runtime_b",))

    class Looking(Host):
        @activity.defn(name="place")
        def place_now(self, wanted: Unplaced) -> str:
            looks.append(wanted)
            return placer.place(wanted)

        @property
        def activities(self) -> list[Callable[..., object]]:
            others = [each for each in super().activities if each != self.place]
            return [*others, self.place_now]

    host = Looking(script({}))
    async with serving(client, queue, host, activity_executor=ThreadPoolExecutor(4)):
        tree = await start(client, queue, placed(queue))
        await host.until(lambda: len(looks) > 5)
        reports = context.reports.waiting[tree.id]
        assert [(each.offer, each.reason) for each in reports if isinstance(each, HeldUp)] == [(1, LACKS)]
        see(labels=("runtime:runtime_b", "gpu"))
        closed = await soon(ended(tree))
    assert closed.task_state is TaskState.DONE
    assert [each.reason for each in context.reports.waiting[tree.id] if isinstance(each, HeldUp)] == [
        LACKS,
        f"waits for a free slot on {queue}",
    ]
