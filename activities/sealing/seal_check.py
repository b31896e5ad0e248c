"""The gate of every workflow: it checks the seals of its start, and of results of activities and children.

Without it, a payload with a bad seal would fail the workflow's task again and again. Here a start without a valid seal
ends the workflow at once, and a result without one fails only that activity or child. Messages pass the gate: their
handlers check them, and report faults.

A replay has the same result, so workflows stay deterministic.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import CommandType
from temporalio.api.failure.v1 import ActivityFailureInfo, ChildWorkflowExecutionFailureInfo, Failure
from temporalio.bridge.proto.activity_result import ActivityResolution
from temporalio.bridge.proto.child_workflow import ChildWorkflowResult
from temporalio.bridge.proto.workflow_activation import (
    InitializeWorkflow,
    WorkflowActivation,
    WorkflowActivationJob,
)
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client
from temporalio.converter import DataConverter, SerializationContext
from temporalio.service import RPCError
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.worker._command_aware_visitor import CommandInfo
from temporalio.workflow import Info

from activities.sealing.converter import binding_of, payloads_of, seals_of
from activities.sealing.payload_seals import Binding, PayloadSeals
from workflows.contract.storable import short_line
from workflows.temporal.seals import UNSEALED, UnsealedError

log = logging.getLogger(__name__)

Refused = Callable[[Info, str], None]
"""Called about a running workflow with an invalid seal, which can't end itself."""

NO_START = (
    "{kind} {id} is not run: its input has no valid seal ({why}). It was started by somebody else, by a "
    "release without seals, or under another seal.key: all hosts of a service need the same one. "
    "To start work: service agent ask, service orchestrate, service pipeline run; what is wrong here: service doctor"
)
NO_RESULT = "the answer has no valid seal ({why}); somebody else may be using the Temporal server: service doctor"

_NOTHING = Payload(metadata={"encoding": b"binary/null"})
_ACTIVITY, _CHILD = ActivityFailureInfo(), ChildWorkflowExecutionFailureInfo()


def with_gate(runner: WorkflowRunner, converter: DataConverter, refused: Refused) -> WorkflowRunner:
    """Put the gate before a workflow runner; without seals return the runner itself."""
    seals = seals_of(converter)
    return _GatedRunner(runner, seals, refused) if seals else runner


class _GatedRunner(WorkflowRunner):
    def __init__(self, runner: WorkflowRunner, seals: PayloadSeals, refused: Refused) -> None:
        self._runner, self._seals, self._refused = runner, seals, refused

    def prepare_workflow(self, defn: Any) -> None:
        self._runner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        self._runner.set_worker_level_failure_exception_types(types)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _Gate(self._runner.create_instance(det), det, self._seals, self._refused)


class _Gate(WorkflowInstance):
    def __init__(
        self, inner: WorkflowInstance, det: WorkflowInstanceDetails, seals: PayloadSeals, refused: Refused
    ) -> None:
        self._inner, self._seals, self._refused = inner, seals, refused
        self._info, self._wanted = det.info, len(det.defn.arg_types or ())
        self._refusal: Failure | None = None

    def get_info(self) -> Info:
        return self._info

    def get_thread_id(self) -> int | None:
        return self._inner.get_thread_id()

    def get_serialization_context(self, command_info: CommandInfo | None) -> SerializationContext | None:
        return self._inner.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: CommandInfo | None) -> Any:
        return self._inner.get_external_store_context(command_info)

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        if self._refusal is not None:
            return self._fail_activation(act, self._refusal)
        for job in act.jobs:
            if job.HasField("initialize_workflow") and (why := self._fault_of_start(job.initialize_workflow)):
                return self._end_at_start(act, why)
            self._look_at_message(job)
            self._look_at_result(job)
        return self._inner.activate(act)

    def _fault_of_start(self, start: InitializeWorkflow) -> str:
        if len(start.arguments) != self._wanted:
            return f"it takes {self._wanted} values, and was given {len(start.arguments)}"
        return self._fault(start.arguments, binding_of(self._inner.get_serialization_context(None)))

    def _end_at_start(self, act: WorkflowActivation, why: str) -> WorkflowActivationCompletion:
        """End the workflow in its first step. A running workflow would only repeat this failing step for ever, so it is
        terminated from outside.
        """
        message = NO_START.format(kind=self._info.workflow_type, id=short_line(self._info.workflow_id), why=why)
        log.warning("%s", message)
        self._refusal = _failure(message)
        if act.is_replaying:
            self._refused(self._info, message)
            return self._fail_activation(act, self._refusal)
        completion = WorkflowActivationCompletion(run_id=act.run_id)
        command = completion.successful.commands.add()
        command.fail_workflow_execution.failure.CopyFrom(self._refusal)
        return completion

    def _fail_activation(self, act: WorkflowActivation, refusal: Failure) -> WorkflowActivationCompletion:
        """Fail every activation of the workflow, except the one that removes it from the cache."""
        completion = WorkflowActivationCompletion(run_id=act.run_id)
        if any(job.HasField("remove_from_cache") for job in act.jobs):
            completion.successful.SetInParent()
        else:
            completion.failed.failure.CopyFrom(refusal)
        return completion

    def _look_at_message(self, job: WorkflowActivationJob) -> None:
        """If a message has several values, empty them: handlers take one value, and report the number."""
        message = job.signal_workflow if job.HasField("signal_workflow") else job.do_update
        if (count := len(message.input)) > 1:
            nothing = self._seals.seal(_NOTHING, binding_of(self._inner.get_serialization_context(None)))
            del message.input[:]
            message.input.extend([nothing] * count)

    def _look_at_result(self, job: WorkflowActivationJob) -> None:
        if job.HasField("resolve_activity"):
            activity = job.resolve_activity
            place = self._place(CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK, activity.seq)
            if failure := self._failure_of(activity.result, place):
                whole = failure if activity.is_local else Failure(activity_failure_info=_ACTIVITY, cause=failure)
                activity.result.failed.failure.CopyFrom(whole)
        elif job.HasField("resolve_child_workflow_execution"):
            child = job.resolve_child_workflow_execution
            place = self._place(CommandType.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION, child.seq)
            if failure := self._failure_of(child.result, place):
                whole = Failure(child_workflow_execution_failure_info=_CHILD, cause=failure)
                child.result.failed.failure.CopyFrom(whole)

    def _place(self, kind: CommandType.ValueType, number: int) -> Binding:
        return binding_of(self._inner.get_serialization_context(CommandInfo(kind, number)))

    def _failure_of(self, result: ActivityResolution | ChildWorkflowResult, place: Binding) -> Failure | None:
        match result.WhichOneof("status"):
            case "completed":
                whole = result.completed.HasField("result")
                why = self._fault([result.completed.result], place) if whole else "it is empty"
            case "failed":
                why = self._fault(payloads_of(result.failed.failure), place)
            case "cancelled":
                why = self._fault(payloads_of(result.cancelled.failure), place)
            case _:
                return None
        if not why:
            return None
        log.warning("%s: a result of %s has no valid seal: %s", short_line(self._info.workflow_id), place, why)
        return _failure(NO_RESULT.format(why=why))

    def _fault(self, payloads: Iterable[Payload], place: Binding) -> str:
        """Return why one of the payloads was not sealed for this place; empty if all were."""
        try:
            for payload in payloads:
                self._seals.unseal(payload, place)
        except UnsealedError as error:
            return error.message
        return ""


def _failure(message: str) -> Failure:
    failure = Failure(message=message, source="service")
    failure.application_failure_info.type = UNSEALED
    failure.application_failure_info.non_retryable = True
    return failure


def leave_alone(info: Info, why: str) -> None:
    """Do nothing about a workflow with an invalid seal, because another host of the store may have the right key."""
    log.error("%s is left to other hosts: %s", info.workflow_id, why)


def ender(client: Client) -> Refused:
    """Return a function that terminates workflows with an invalid seal; the rows of their trees are then ended as
    usual.
    """
    loop = asyncio.get_running_loop()

    def refuse(info: Info, why: str) -> None:
        asyncio.run_coroutine_threadsafe(_end(client, info, why), loop)

    return refuse


async def _end(client: Client, info: Info, why: str) -> None:
    try:
        await client.get_workflow_handle(info.workflow_id, run_id=info.run_id).terminate(reason=why)
    except RPCError as error:  # it has ended, and was only queried; or the next attempt ends it
        log.info("%s is not ended: %s", info.workflow_id, error)
