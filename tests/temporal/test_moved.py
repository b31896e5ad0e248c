"""Attempts whose host is lost, on a real server: given up without waiting for the host, and begun elsewhere (Q5)."""

import asyncio
from contextlib import suppress

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, ended, says, script, serving, start
from tests.tree.simulator import delegation
from tests.waiting import soon
from workflows.model.orders import Kill
from workflows.model.settings import Bounds
from workflows.model.states import TaskState
from workflows.policy.moving import Move
from workflows.temporal.delegation import DelegatedAttempt
from workflows.temporal.delegation_tree import DelegationTree

pytestmark = pytest.mark.ruling("Q5", "Q5.claim")


def lost(host: Host, queue: str, name: str, attempt: int = 1) -> Move:
    return Move(job_id=host.run(name).job_id, attempt=attempt, host=queue, reason="its host is lost", last_seen=1.0)


async def order(client: Client, tree: Handle, move: Move) -> None:
    """Order a move, of a coordinator's job or of a leg, as the sweeper does."""
    if move.job_id == tree.id:
        await tree.signal(DelegationTree.move, move)
    else:
        await client.get_workflow_handle(move.job_id).signal(DelegatedAttempt.move, move)


@pytest.mark.parametrize("name", ["root", "a"])
async def test_a_begun_job_is_given_up_at_once_and_begins_elsewhere(client: Client, queue: str, name: str) -> None:
    legs = {"root": (delegation("a"), delegation("b"))}
    host = Host(script(legs), held={name}, placements=[queue])  # what moves is placed, also in an unplaced tree
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running(name)
        await order(client, tree, lost(host, queue, name, attempt=7))  # not what is awaited
        await order(client, tree, lost(host, "elsewhere", name))
        await order(client, tree, lost(host, queue, name))
        await host.until(lambda: len([run for run in host.runs if run.moved_from == 1]) == 1)
        host.release(name)
        closed = await soon(ended(tree))
    assert (closed.task_state, closed.jobs) == (TaskState.DONE, 4)
    assert sorted(host.names) == sorted(["root", "a", "b", "normal", name])
    if name == "a":
        assert host.run(name, attempt=2).before == "attempt 1 was interrupted: its host is lost"


async def test_a_leg_that_waits_there_is_offered_elsewhere_as_the_attempt_that_it_is(
    client: Client, queue: str
) -> None:
    host = Host(script({"root": (delegation("a"),)}), waiting={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        move = Move(job_id=f"{tree.id}.1", attempt=1, host=queue, reason="its host is drained", begun=False)
        for _ in iter(lambda: (move.job_id, 1, 2) in host.claims, True):  # the first may come before it waits
            with suppress(RPCError):
                await order(client, tree, move)
            await asyncio.sleep(0.1)
        host.release("a")
        closed = await soon(ended(tree))
    Books(host.written).check(host.runs, Bounds())
    assert (closed.task_state, host.names) == (TaskState.DONE, ["root", "a", "normal"])
    assert (host.run("a").attempt, host.run("a").offer) == (
        1,
        max(number for job_id, _, number in host.claims if job_id == move.job_id),
    )


async def test_what_the_host_had_recorded_counts_and_a_host_that_came_back_keeps_its_attempt(
    client: Client, queue: str
) -> None:
    host = Host(script({"root": (delegation("a"), delegation("b"))}), held={"a", "b"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a", "b")
        a, b = host.run("a"), host.run("b")
        host.left[a.job_id, 1] = says(a, "approved", begun_at=1.0, branch="service/recorded")
        host.left[b.job_id, 1] = None
        await order(client, tree, lost(host, queue, "a"))
        await order(client, tree, lost(host, queue, "b"))
        await host.until(lambda: Books(host.written).named("a").branch == "service/recorded")
        host.release("b")
        closed = await soon(ended(tree))
    Books(host.written).check(host.runs, Bounds())
    assert (closed.task_state, sorted(host.names)) == (TaskState.DONE, ["a", "b", "normal", "root"])


async def test_a_kill_ends_what_is_about_to_move(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("a"),)}), held={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        await order(client, tree, lost(host, queue, "a"))
        await tree.signal(DelegationTree.kill, Kill(actor="ann", immediate=True))
        closed = await soon(ended(tree))
    assert closed.task_state is TaskState.CANCELLED
