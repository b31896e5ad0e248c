"""Statuses in Temporal's own lists: failed workflows are Failed, cancelled ones Canceled."""

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from bridge.machine.daemon_state import VIEWS
from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, Line, an_input, ended, script, serving, start
from tests.tree.simulator import delegation
from tests.waiting import soon, until
from workflows.model.orders import Kill
from workflows.model.spend import Usage
from workflows.model.states import TaskState
from workflows.temporal import search
from workflows.temporal.delegation_tree import DelegationTree
from workflows.tree.commands import CloseTree

FAILED, CANCELED, COMPLETED = (
    WorkflowExecutionStatus.FAILED,
    WorkflowExecutionStatus.CANCELED,
    WorkflowExecutionStatus.COMPLETED,
)


async def status(client: Client, workflow_id: str) -> WorkflowExecutionStatus | None:
    return (await client.get_workflow_handle(workflow_id).describe()).status


async def failure(tree: Handle) -> ApplicationError:
    with pytest.raises(WorkflowFailureError) as caught:
        await soon(tree.result())
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


@pytest.mark.ruling("engine:ui.status")
async def test_a_blocked_tree_is_failed_with_its_reason_and_its_outcome(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("a"), delegation("b", failure_policy="continue")), "a": "failed"}))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        error = await failure(tree)
    assert "part a failed" in error.message
    assert (error.type, error.category) == ("Blocked", ApplicationErrorCategory.BENIGN)
    assert CloseTree.model_validate(error.details[0]).task_state is TaskState.BLOCKED
    assert await status(client, tree.id) is FAILED
    assert await status(client, host.run("a").job_id) is FAILED
    assert await status(client, host.run("b").job_id) is COMPLETED


@pytest.mark.ruling("engine:ui.status")
async def test_a_delegation_is_what_its_job_is(client: Client, queue: str) -> None:
    lines: dict[str, Line] = {"a": "failed", "b": "blocked", "c": None, "d": "changes_requested"}
    wanted = {"a": FAILED, "b": FAILED, "c": FAILED, "d": COMPLETED}
    host = Host(script({"root": tuple(delegation(leg, failure_policy="continue") for leg in lines), **lines}))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        assert (await ended(tree)).task_state is TaskState.DONE
    assert await status(client, tree.id) is COMPLETED
    assert {leg: await status(client, host.run(leg).job_id) for leg in lines} == wanted
    decisions = {leg: Books(host.written).named(leg).decision or None for leg in lines}
    assert decisions == lines, "the task has read the whole outcome"


@pytest.mark.ruling("engine:ui.status")
@pytest.mark.parametrize("immediate", [False, True])
async def test_a_killed_tree_is_cancelled(client: Client, queue: str, immediate: bool) -> None:
    host = Host(script({"root": (delegation("a"),)}), held={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        await tree.signal(DelegationTree.kill, Kill(actor="ann", immediate=immediate))
        await host.until(lambda: "delegation_killed" in Books(host.written).kinds())
        if not immediate:
            host.release("a")
        await soon(ended(tree))
    assert await status(client, tree.id) is CANCELED
    assert await status(client, host.run("a").job_id) is (CANCELED if immediate else COMPLETED)


@pytest.mark.ruling("engine:ui.status")
async def test_what_a_cancelled_delegation_has_spent_is_counted(client: Client, queue: str) -> None:
    """Temporal stores no result of a cancelled workflow, but its outcome reaches the tree."""
    host = Host(script({"root": (delegation("a", failure_policy="continue"),)}), held={"a"})
    spent = Usage(input_tokens=700, output_tokens=70)
    host.on_cancel = lambda outcome: outcome.model_copy(update={"usage": spent, "branch": "service/half"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        await client.get_workflow_handle(host.run("a").job_id).cancel()
        await soon(ended(tree))
    leg = Books(host.written).named("a")
    assert (leg.usage, leg.branch, leg.reason) == (spent, "service/half", "stopped by order")
    assert await status(client, leg.job_id) is CANCELED


@pytest.mark.ruling("engine:ui.status")
async def test_a_tree_that_is_over_needs_no_attention(client: Client, queue: str) -> None:
    host = Host(script({"root": "failed"}))
    async with serving(client, queue, host):
        tree = await start(client, queue, an_input())
        await failure(tree)
    described = await tree.describe()
    assert described.typed_search_attributes.get(search.ATTENTION) is None
    assert described.typed_search_attributes[search.STATE] == "blocked"


@pytest.mark.ruling("engine:ui.status")
async def test_each_list_that_the_daemon_links_to_has_its_workflows(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("a"),)}), held={"a"})

    async def listed(name: str) -> set[str]:
        query = f"{VIEWS[name].format(today='2000-01-01T00:00:00Z')} AND TaskQueue = '{queue}'"
        return {each.id async for each in client.list_workflows(query)}

    async with serving(client, queue, host):
        works = await start(client, queue)
        await host.until_running("a")
        host.answer = script({"root": "failed"})
        failed = await start(client, queue)
        await failure(failed)
        leg = host.run("a").job_id
        wanted = {
            "open trees": {works.id},
            "open legs": {leg},
            "running": {works.id, leg},
            "failed trees": {failed.id},
            "failed today": {failed.id},
            "all": {works.id, leg, failed.id},
            "waiting": set[str](),
            "pipeline runs": set[str](),
        }

        async def as_wanted() -> bool:
            return {name: await listed(name) for name in VIEWS} == wanted

        await until(as_wanted)
        host.answer = script({})
        host.release("a")
        await soon(ended(works))
