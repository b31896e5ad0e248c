"""Why Temporal closed a workflow that has left no outcome: it was terminated, failed or timed out (ruling G2)."""

from datetime import timedelta

from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import Failure
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHistoryEventFilterType
from temporalio.converter import WorkflowSerializationContext
from temporalio.exceptions import FailureError

from workflows.temporal.calls import Closed
from workflows.temporal.seals import UnsealedError

RPC_TIMEOUT = timedelta(seconds=5)
NO_REASON = "no reason was given"


@activity.defn(name="how_it_closed")
async def how_it_closed(closed: Closed) -> str:
    """Tell a tree who ended the workflow of one of its legs, and why."""
    handle = activity.client().get_workflow_handle(closed.workflow_id, run_id=closed.run_id)
    described = await handle.describe(rpc_timeout=RPC_TIMEOUT)
    return await why_closed(activity.client(), closed.workflow_id, closed.run_id, described.status)


async def why_closed(client: Client, workflow_id: str, run_id: str, status: WorkflowExecutionStatus | None) -> str:
    """Return who ended a workflow and why, as its history records it."""
    handle = client.get_workflow_handle(workflow_id, run_id=run_id)
    only_last = WorkflowHistoryEventFilterType.CLOSE_EVENT
    async for event in handle.fetch_history_events(event_filter_type=only_last, rpc_timeout=RPC_TIMEOUT):
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
            attributes = event.workflow_execution_terminated_event_attributes
            return f"terminated from outside by {attributes.identity or 'the server'}: {attributes.reason or NO_REASON}"
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
            failed = event.workflow_execution_failed_event_attributes.failure
            return f"its workflow failed: {await _message(client, workflow_id, failed) or NO_REASON}"
    return f"its workflow ended as {status.name.lower() if status else 'unknown'} without recording an outcome"


async def _message(client: Client, workflow_id: str, failure: Failure) -> str:
    """Return a failure's message, decrypted if need be."""
    if not failure.HasField("encoded_attributes"):
        return failure.message
    context = WorkflowSerializationContext(client.namespace, workflow_id)
    try:
        read = await client.data_converter.with_context(context).decode_failure(failure)
    except UnsealedError as error:
        return error.message
    return read.message if isinstance(read, FailureError) else str(read)
