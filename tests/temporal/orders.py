"""What operators do to trees, and a tree's runs one after another."""

import time

from temporalio.client import Client

from tests.temporal.host import Handle, Host, ended, start
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
    """As the operation does it: through the store, hence through JSON."""
    state = type(host.kept[-1]).model_validate_json(host.kept[-1].model_dump_json())
    order = RetryRequested(now=time.time(), actor="ann", job_id=job_id)
    return TreeStart(input=state.input, host=queue, state=state, retry=order)


def latest(client: Client, tree: Handle) -> Handle:
    """Whichever run of the tree is current."""
    return client.get_workflow_handle_for(DelegationTree.run, tree.id)


async def runs_of(client: Client, tree: Handle) -> int:
    return len([found async for found in client.list_workflows(f"WorkflowId = '{tree.id}'")])
