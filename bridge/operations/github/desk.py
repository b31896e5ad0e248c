"""The GitHub desk, a Temporal workflow: signalled when there is news, and started again when the seal key was
replaced.
"""

from contextlib import suppress

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from activities.temporal import RPC_TIMEOUT
from bridge.operations.service import Service
from bridge.operations.temporal import NoWorkflowError, client_of, translate_errors
from workflows.model.errors import UnreachableError
from workflows.temporal.calls import TASK_TIMEOUT
from workflows.temporal.github_desk import GithubDesk, desk_id


async def ring(temporal: Client, task_queue: str) -> None:
    """Start the desk's workflow, or signal it to take a turn now."""
    try:
        await temporal.start_workflow(
            GithubDesk.run,
            id=desk_id(task_queue),
            task_queue=task_queue,
            task_timeout=TASK_TIMEOUT,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            start_signal="ring",
            static_summary="GitHub · comments, checks and pull requests of all repositories",
            rpc_timeout=RPC_TIMEOUT,
        )
    except (RPCError, RuntimeError) as error:
        raise UnreachableError(f"the GitHub process cannot be woken: {error}", "service daemon status") from None


async def renew(service: Service) -> None:
    """End the desk's workflow and start a new one. Its whole state is in the store."""
    client, queue = await client_of(service), service.settings.temporal.task_queue
    with suppress(NoWorkflowError), translate_errors():
        handle = client.get_workflow_handle(desk_id(queue))
        await handle.terminate(reason="it begins anew under the new seal key", rpc_timeout=RPC_TIMEOUT)
    await ring(client, queue)
