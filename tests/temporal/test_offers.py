"""Offers on a real server: a waiting one is taken back at once, a begun one runs on (ruling B5)."""

from collections.abc import Callable

import pytest
from temporalio.client import Client

from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, ended, script, serving, start
from tests.temporal.people import asking, order, say
from tests.tree.simulator import delegation
from tests.waiting import soon
from workflows.contract.models import Delegation
from workflows.model.orders import Kill
from workflows.model.rows import Records
from workflows.model.settings import Bounds
from workflows.model.states import JobState, TaskState
from workflows.temporal.delegation_tree import DelegationTree

pytestmark = pytest.mark.ruling("B5")
LEGS = tuple(f"l{n:02}" for n in range(12))
FOUR, OTHERS = LEGS[:4], LEGS[4:]


def wide() -> tuple[Delegation, ...]:
    return tuple(delegation(leg) for leg in LEGS)


async def twelve_on_four(client: Client, queue: str, host: Host) -> Handle:
    """Start a tree: four of twelve legs have begun; the others find no slot."""
    host.held |= set(FOUR)
    host.waiting |= set(OTHERS)
    tree = await start(client, queue)
    await host.until(lambda: running(host) == set(FOUR))
    return tree


def running(host: Host) -> set[str]:
    jobs = Books(host.written).jobs.values()
    return {job.delegation_id or "" for job in jobs if job.state is JobState.RUNNING}


def states(host: Host, legs: tuple[str, ...]) -> set[JobState]:
    books = Books(host.written)
    return {books.named(leg).state for leg in legs}


async def until_all(host: Host, legs: tuple[str, ...], state: JobState) -> None:
    await host.until(lambda: states(host, legs) == {state})


@pytest.mark.ruling("G2")
async def test_a_kill_does_not_wait_for_places(client: Client, queue: str) -> None:
    host = Host(script({"root": wide()}))
    async with serving(client, queue, host):
        tree = await twelve_on_four(client, queue, host)
        assert states(host, OTHERS) == {JobState.QUEUED}
        await tree.signal(DelegationTree.kill, Kill(actor="ann", immediate=False))
        await until_all(host, OTHERS, JobState.CANCELLED)
        host.release(*FOUR)
        closed = await soon(ended(tree))
        host.release(*OTHERS)
    Books(host.written).check(host.runs, Bounds())
    assert closed.task_state is TaskState.CANCELLED
    assert set(host.names) == {"root", *FOUR, "finalize"}, "what was taken back never began"
    assert states(host, FOUR) == {JobState.SUCCEEDED}


@pytest.mark.ruling("F8")
async def test_a_pause_starts_nothing_and_what_it_took_back_goes_on_after_it(client: Client, queue: str) -> None:
    host = Host(asking({"root": wide()}, FOUR[0]))
    async with serving(client, queue, host):
        tree = await twelve_on_four(client, queue, host)
        back = list[int]()

        async def seen(rows: Records) -> None:
            back.extend(list(host.claims.values()).count("back") for _ in rows.rounds)

        host.before_write = seen
        host.release(FOUR[0])
        await host.until(lambda: bool(Books(host.written).open()))
        assert back[0] == len(OTHERS), "nothing can begin any more once the pause is shown"
        host.release(*LEGS)
        await until_all(host, FOUR, JobState.SUCCEEDED)
        assert set(host.names) == {"root", *FOUR}
        await say(tree, order(tree.id, "answer", "q: this"))
        closed = await soon(ended(tree))
    Books(host.written).check(host.runs, Bounds())
    assert closed.task_state is TaskState.DONE
    assert sorted(host.names) == sorted(["root", *LEGS, "answered"])


@pytest.mark.ruling("D4")
async def test_a_block_starts_nothing_more(client: Client, queue: str) -> None:
    host = Host(script({"root": wide(), FOUR[0]: None}))
    async with serving(client, queue, host):
        tree = await twelve_on_four(client, queue, host)
        host.release(FOUR[0])
        await until_all(host, OTHERS, JobState.SKIPPED)
        host.release(*LEGS)
        closed = await soon(ended(tree))
    Books(host.written).check(host.runs, Bounds())
    assert closed.task_state is TaskState.BLOCKED
    assert set(host.names) == {"root", *FOUR}


@pytest.mark.ruling("G2")
async def test_a_root_that_never_began_is_cancelled_with_nothing_to_sum_up(client: Client, queue: str) -> None:
    host = Host(script({}), waiting={"root"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until(lambda: bool(host.written))
        await tree.signal(DelegationTree.kill, Kill(actor="ann", immediate=False))
        closed = await soon(ended(tree))
    assert (closed.task_state, host.names) == (TaskState.CANCELLED, [])


async def test_a_begin_that_was_never_reported_is_told_by_the_outcome(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("a"),)}), reports=False)
    async with serving(client, queue, host):
        await ended(await start(client, queue))
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert all(job.started_at for job in books.jobs.values())


async def test_who_is_asked_back_too_late_is_known_to_have_begun(client: Client, queue: str) -> None:
    """The host has begun it, and its report got lost."""
    host = Host(script({"root": wide()}), reports=False, held={*LEGS})
    look: Callable[[], bool] = lambda: set(host.names) == {"root", *LEGS}  # noqa: E731
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until(look)
        assert running(host) == set()
        await tree.signal(DelegationTree.kill, Kill(actor="ann", immediate=False))
        await host.until(lambda: running(host) == set(LEGS))
        host.release(*LEGS)
        await soon(ended(tree))
    Books(host.written).check(host.runs, Bounds())
    assert states(host, LEGS) == {JobState.SUCCEEDED}
