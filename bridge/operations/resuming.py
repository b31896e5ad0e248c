"""Carrying a resume to its tree: by update where a worker answers, by signal where none does."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from activities import outside
from activities.store import jobs as stored_jobs
from activities.temporal import RPC_TIMEOUT, connect
from bridge.operations import verdicts
from bridge.operations.service import Service
from workflows.delegation_tree import DelegationTree
from workflows.errors import NotFoundError, RefusedError, UnreachableError
from workflows.messages import ResumeOrder
from workflows.policy.answers import clean, one_line
from workflows.policy.verbs import No
from workflows.tree.commands import CloseTree

if TYPE_CHECKING:
    from bridge.operations.people import Resume, Verdict

PATIENCE = timedelta(seconds=4)
"""How long a verdict is waited for before the words are left with Temporal."""


async def resume(service: Service, root: str, order: "Resume") -> "Verdict":
    """The tree's verdict, or the promise that the words are kept."""
    client = await connect(service.home, service.settings)
    handle = client.get_workflow_handle_for(DelegationTree.run, root)
    said = ResumeOrder(
        actor=order.actor,
        channel=order.channel,
        job_id=order.job_id,
        verb=clean(order.verb),
        text=clean(order.text),
        round=order.round,
        digest=order.digest,
        request_id=order.request_id,
        partial=order.partial,
        other=order.other,
    )
    try:
        return await _ask(handle, said)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            await outside.settle(client, service.store, service.settings.temporal.task_queue, root)
            raise RefusedError(verdicts.too_late(service, root, order), _way_on(service, root)) from None
        raise UnreachableError(f"Temporal did not take it: {error}", "service daemon status") from None


def _way_on(service: Service, root: str) -> str:
    """What the task says to type; where it says nothing, the tree is there to be looked at."""
    task = stored_jobs.task_of(service.store, root)
    return task.next if task and task.next else f"service job tree {root}"


async def _ask(handle: "WorkflowHandle[DelegationTree, CloseTree]", said: ResumeOrder) -> "Verdict":
    from bridge.operations.people import Verdict

    try:
        answer: Any = await handle.execute_update(
            "resume", said, id=said.request_id, result_type=str, rpc_timeout=PATIENCE
        )
        return Verdict(str(answer), applied=True)
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        sentence = cause.message if isinstance(cause, ApplicationError) else str(cause)
        if isinstance(cause, ApplicationError) and cause.type == No.UNKNOWN_JOB:
            raise NotFoundError(sentence, f"service job tree {said.job_id}") from None
        data = cause.details[0] if isinstance(cause, ApplicationError) and cause.details else {}
        raise RefusedError(sentence, verdicts.lines_to_type(data, said.job_id)) from None
    except WorkflowUpdateRPCTimeoutOrCancelledError:
        # The same request id: whichever of the two arrives, it acts once.
        await handle.signal("resume", said, rpc_timeout=RPC_TIMEOUT)
        kept = f"{said.verb} {one_line(said.text, 300)}".strip()
        later = "no worker is there to take it; it is kept, and takes effect when one comes"
        return Verdict(f"{later}: {kept}", applied=False)
