"""Operators' orders to trees, and a tree's runs one after another."""

import time
from uuid import uuid4

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client

from tests.temporal.host import Handle, Host, ended, start
from tests.waiting import until
from workflows.model.orders import Kill
from workflows.model.states import TaskState
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.messages import TreeStart
from workflows.tree.events import RetryRequested


async def kill(tree: Handle, *, immediate: bool = False) -> None:
    await tree.signal(DelegationTree.kill, Kill(actor="ann", immediate=immediate))


async def blocked(client: Client, queue: str, host: Host) -> Handle:
    tree = await start(client, queue)
    closed = await ended(tree)
    assert closed.task_state is TaskState.BLOCKED
    return tree


def reopened(queue: str, host: Host, job_id: str) -> TreeStart:
    """Return the input of a re-opened tree as the operation makes it: through the store, hence through JSON."""
    state = type(host.kept[-1]).model_validate_json(host.kept[-1].model_dump_json())
    order = RetryRequested(now=time.time(), actor="ann", job_id=job_id)
    return TreeStart(input=state.input, host=queue, state=state, retry=order)


def latest(client: Client, tree: Handle) -> Handle:
    """Return a handle on the current run of the tree."""
    return client.get_workflow_handle_for(DelegationTree.run, tree.id)


async def runs_of(client: Client, tree: Handle) -> int:
    """Count the runs, once the last one is in the list of workflows, which may lag behind."""
    last, runs = (await latest(client, tree).describe()).run_id, set[str]()

    async def listed() -> bool:
        runs.update([each.run_id async for each in client.list_workflows(f"WorkflowId = '{tree.id}'")])
        return last in runs

    await until(listed)
    return len(runs)


async def steps(client: Client, tree: Handle) -> list[int]:
    """The moments a workflow can be reset to."""
    history = await latest(client, tree).fetch_history()
    return [each.event_id for each in history.events if each.HasField("workflow_task_completed_event_attributes")]


async def reset(client: Client, tree: Handle, event_id: int) -> None:
    """Reset a workflow like `temporal workflow reset`."""
    again = ResetWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=tree.id),
        reason="by hand, for a test",
        request_id=uuid4().hex,
        workflow_task_finish_event_id=event_id,
    )
    await client.workflow_service.reset_workflow_execution(again)


async def taken_up(client: Client, child_id: str, times: int = 1) -> None:
    """Wait until the parent's runs have asked a child this many times to report its end."""

    async def asked() -> bool:
        history = await client.get_workflow_handle(child_id).fetch_history()
        signals = [each.workflow_execution_signaled_event_attributes.signal_name for each in history.events]
        return signals.count("take_up") >= times

    await until(asked)
