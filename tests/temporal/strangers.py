"""Strangers who reach a service's Temporal server without its key: plain clients, workers of their own."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, ClassVar

from google.protobuf.message import Message
from pydantic import BaseModel
from temporalio import activity, workflow
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import Payload, SearchAttributes
from temporalio.api.enums.v1 import CommandType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest, RespondWorkflowTaskCompletedRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import RawValue, RetryPolicy
from temporalio.worker import Worker

from tests.tree.simulator import outcome
from tests.waiting import soon, until
from workflows.model.jobs import JobRun


def payload(value: object, **metadata: bytes) -> RawValue:
    """Return JSON as anybody can write it."""
    return RawValue(Payload(metadata={"encoding": b"json/plain"} | metadata, data=json.dumps(value).encode()))


def payloads_in(message: Message) -> list[Payload]:
    """Return all payloads in a message, except search attributes, which are not sealed."""
    if isinstance(message, SearchAttributes):
        return []
    if isinstance(message, Payload):
        return [message]
    payloads: list[Payload] = []
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            several: list[Any] = [inner for inner in value.values() if isinstance(inner, Message)]
        else:
            several = list(value) if field.is_repeated else [value]
        for inner in several:
            payloads += payloads_in(inner)
    return payloads


async def input_of(client: Client, workflow_id: str) -> Payload:
    """Return a workflow's input, copied from its history."""
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    return history.events[0].workflow_execution_started_event_attributes.input.payloads[0]


async def signal_in(handle: WorkflowHandle[Any, Any], name: str) -> Payload:
    """Return a signal's payload, as soon as the history has it."""
    payloads: list[Payload] = []

    async def there() -> bool:
        for event in (await handle.fetch_history()).events:
            if (signal := event.workflow_execution_signaled_event_attributes).signal_name == name:
                payloads.extend(signal.input.payloads)
        return bool(payloads)

    await until(there, f"no signal {name}")
    return payloads[0]


async def closed_as(client: Client, workflow_id: str) -> tuple[str, str]:
    """Wait for a workflow's end, and return its status and failure message."""
    handle = client.get_workflow_handle(workflow_id)

    async def over() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    await until(over, f"{workflow_id} goes on")
    status = (await handle.describe()).status
    last = (await handle.fetch_history()).events[-1]
    failed, ended = (
        last.workflow_execution_failed_event_attributes,
        last.workflow_execution_terminated_event_attributes,
    )
    return status.name if status else "", failed.failure.message or ended.reason


class LyingHost:
    """Takes jobs from a host's queue and reports them all done."""

    def __init__(self, lie: Callable[[JobRun], object] = lambda run: outcome(run, "approved")) -> None:
        self.lie, self.seen = lie, list[str]()

    @activity.defn(name="run_job")
    async def run_job(self, run: JobRun) -> Any:
        self.seen.append(run.job_id)
        return self.lie(run)


@workflow.defn(name="Forger", sandboxed=False)
class Forger:
    """Has a service's host run a stranger's activity."""

    given: ClassVar[list[object]] = []

    @workflow.run
    async def run(self, name: str, queue: str) -> str:
        done = await workflow.execute_activity(
            name,
            args=self.given,
            task_queue=queue,
            start_to_close_timeout=timedelta(seconds=20),
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
        return str(done)


async def order(client: Client, workflow_id: str, name: str, queue: str, *given: object) -> None:
    """Have it run, by a worker of the stranger's own; raise its error."""
    mine = f"stranger-{workflow_id}"
    Forger.given = list(given)
    async with Worker(client, task_queue=mine, workflows=[Forger]):
        await soon(client.execute_workflow(Forger.run, args=[name, queue], id=workflow_id, task_queue=mine))


@asynccontextmanager
async def lying(client: Client, queue: str, host: LyingHost) -> AsyncIterator[None]:
    async with Worker(client, task_queue=queue, activities=[host.run_job]):
        yield


async def completed_by_a_stranger(client: Client, queue: str, workflow_id: str, result: BaseModel) -> None:
    """Poll a queue until a task of this workflow comes, and complete the workflow with this result."""
    await client.get_workflow_handle(workflow_id).signal("wake")
    poll = PollWorkflowTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), identity="stranger"
    )
    forged = Payload(metadata={"encoding": b"json/plain"}, data=result.model_dump_json().encode())
    command = Command(command_type=CommandType.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION)
    command.complete_workflow_execution_command_attributes.result.payloads.append(forged)
    while True:
        task = await soon(client.workflow_service.poll_workflow_task_queue(poll))
        if task.workflow_execution.workflow_id == workflow_id:
            break
    answer = RespondWorkflowTaskCompletedRequest(
        namespace=client.namespace, task_token=task.task_token, commands=[command], identity="stranger"
    )
    await client.workflow_service.respond_workflow_task_completed(answer)
