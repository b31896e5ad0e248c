"""The real workflows of a tree on the real store, without a server: a test chooses who takes the next step.

`Stage` plays Temporal's server (each workflow has a queue of what it is told next), the worker (its local activities
are the product's own), the host (claims, ends and orders to stop are the store's) and the people. It checks each step.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Engine
from temporalio import workflow
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.bridge.proto.workflow_activation import (
    InitializeWorkflow,
    WorkflowActivation,
    WorkflowActivationJob,
)
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.common import Priority, TypedSearchAttributes
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DefaultFailureConverter
from temporalio.exceptions import CancelledError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.workflow import ParentInfo

from activities.host.context import Context
from activities.jobs.record_tree import TreeRecorder
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import attempt_rows, claim_rows, event_rows, job_rows, round_rows
from activities.store.attempt_rows import AttemptRow, Offered
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import Kill, ResumeOrder
from workflows.model.rows import Records, TaskRecord
from workflows.model.states import Continuation, JobState, TaskState
from workflows.policy.moving import Move
from workflows.temporal import calls
from workflows.temporal.delegation import DelegatedAttempt
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.messages import Begun, HostReport, TreeStart
from workflows.temporal.moving import GiveUp
from workflows.temporal.runner import runner
from workflows.temporal.writes import WRITERS
from workflows.tree.state import TreeInput, TreeMemory

HOST = "here"
STOPPED = "stopped on order"
OF_A_WORKFLOW = "step of "
STEPS = 600
"""The maximum number of steps of a tree of a handful of jobs."""

_LOOP = asyncio.Runner()
"""Where instances of workflows are made: the SDK wants its worker's loop."""
_CONVERTER = pydantic_data_converter.payload_converter
_FAILURES = DefaultFailureConverter()
_WORKFLOWS: dict[str, type] = {"DelegationTree": DelegationTree, "Delegation": DelegatedAttempt}
_EXTERN: dict[str, Callable[..., Any]] = {"__temporal_assert_local_activity_valid": lambda _: None}

Step = Callable[[], None]


@dataclass(eq=False)
class Execution:
    """A workflow that runs, and what it is told next."""

    workflow_id: str
    instance: WorkflowInstance
    parent: "Execution | None" = None
    seq: int = 0
    """Its number among its parent's children."""
    queue: list[WorkflowActivationJob] = field(default_factory=list)
    closed: bool = False


@dataclass(eq=False)
class Call:
    """An activity on the host: one attempt of a job."""

    execution: Execution
    seq: int
    run: JobRun
    row: AttemptRow | None = None
    reported: bool = False
    cancelled: bool = False
    """True if the server passes a cancellation on to it."""

    @property
    def offered(self) -> Offered:
        return Offered(self.run.job_id, self.run.attempt, self.run.offer)


@dataclass
class Stage:
    """One tree in the middle of its life."""

    store: Engine
    home: Home
    start: TreeInput
    answer: Callable[[JobRun], JobOutcome]
    """How each attempt ends, if nobody stops it."""
    executions: dict[str, Execution] = field(default_factory=dict)
    at_host: list[Call] = field(default_factory=list)
    locals: list[tuple[str, Step]] = field(default_factory=list)
    timers: list[tuple[Execution, int]] = field(default_factory=list)
    runs: list[JobRun] = field(default_factory=list)
    """Every attempt that its host has begun."""
    back: set[Offered] = field(default_factory=set)
    """The offers of which the store has said that no host can begin them."""
    stopped: list[str] = field(default_factory=list)
    ended: dict[str, JobOutcome] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)
    killed_at_once: bool = False
    log: list[str] = field(default_factory=list)
    """The steps that were taken."""
    now: float = field(default_factory=time.time)
    _read: dict[str, Any] = field(default_factory=dict)
    """What was read in the store since it was last written to."""

    def __post_init__(self) -> None:
        self.recorder = TreeRecorder(Context(self.home, Settings(), self.store))
        first = TreeStart(input=self.start, host=HOST)
        self.tree = self._execute("DelegationTree", self.start.root_job_id, _CONVERTER.to_payloads([first]))

    @property
    def over(self) -> bool:
        return self.tree.closed

    def steps(self) -> dict[str, Step]:
        """Return the steps that can come next, by name; the first one is what a quiet machine would do."""
        steps: dict[str, Step] = {}
        for execution in self.executions.values():
            if execution.queue and not execution.closed:
                steps[f"{OF_A_WORKFLOW}{execution.workflow_id}"] = partial(self._advance, execution)
        steps |= dict(self.locals[:1])
        for call in self.at_host:
            steps |= dict(self._of_host(call))
        return steps

    def _of_host(self, call: Call) -> Iterator[tuple[str, Step]]:
        name = f"{call.run.job_id}, attempt {call.run.attempt}"
        if call.row is None:
            if call.cancelled:
                yield f"drop {name}", lambda: self._resolve_cancelled(call)
            yield f"begin {name}", lambda: self._begin(call)
            return
        if call.cancelled or self._is_ordered_to_stop(call):
            yield f"stop {name}", lambda: self._stop(call)
        if not call.reported:
            yield f"report {name}", lambda: self._report(call)
        yield f"end {name}", lambda: self._end(call, self.answer(call.run))

    def kill(self, *, immediate: bool) -> None:
        self.killed_at_once = self.killed_at_once or immediate
        self._signal(self.tree, "kill", Kill(actor="ann", immediate=immediate))

    def resume(self, verb: str, text: str = "") -> None:
        order = ResumeOrder(actor="ann", channel="cli", job_id=self.tree.workflow_id, verb=verb, text=text)
        self._signal(self.tree, "resume", order)

    def move(self, call: Call) -> None:
        """Lose the host of an attempt."""
        self.moved.add(call.run.job_id)
        order = Move(job_id=call.run.job_id, attempt=call.run.attempt, host=HOST, reason="its host is lost")
        self._signal(call.execution, "move", order)

    @property
    def task(self) -> TaskRecord:
        """Return the task as people see it."""
        task = job_rows.task_of(self.store, self.tree.workflow_id)
        assert task is not None
        return task

    @property
    def events(self) -> list[str]:
        """Return the kinds of the events that people can see."""
        return [event.kind for event in event_rows.of_tree(self.store, self.tree.workflow_id)]

    @property
    def paused(self) -> bool:
        if "paused" not in self._read:
            self._read["paused"] = bool(round_rows.open_rounds(self.store, root=self.tree.workflow_id))
        return bool(self._read["paused"])

    def _is_ordered_to_stop(self, call: Call) -> bool:
        if "to stop" not in self._read:
            begun = [call.offered.key for call in self.at_host if call.row is not None]
            self._read["to stop"] = claim_rows.ordered_to_stop(self.store, begun)
        return call.offered.key in self._read["to stop"]

    def play(self, people: Callable[[], dict[str, Step]], choose: Callable[[list[str]], str]) -> None:
        """Let the steps of all be taken, one after another, until the tree has closed."""
        for _ in range(STEPS):
            if self.over:
                self._check_end()
                return
            possible = self.steps() | people()
            if self.timers and not possible:
                possible = {"timer": self._fire}
            assert possible, "the task waits for nothing"
            taken = choose(list(possible))
            self.log.append(taken)
            if not taken.startswith(OF_A_WORKFLOW):  # a workflow writes nothing
                self._read.clear()
            possible[taken]()
        raise AssertionError("the task does not end")

    def _check_end(self) -> None:
        """Check that nothing is left, that nothing begins later, and that the rows have what each agent did."""
        for call in [call for call in self.at_host if call.row is None]:
            self._begin(call)
        assert not [call for call in self.at_host if call.run.job_id not in self.moved], "an agent is left"
        for job in job_rows.tree(self.store, self.tree.workflow_id):
            assert job.state is not JobState.RUNNING
            if job.job_id in self.ended and job.job_id not in self.moved:
                assert job.state is self.ended[job.job_id].state, f"what {job.job_id} has done is recorded"

    # The host.

    def _begin(self, call: Call) -> None:
        row = claim_rows.begin(self.store, call.offered, host=HOST, run_dir=f"/{call.run.job_id}-{call.run.attempt}")
        if row is None:
            back = JobOutcome(job_id=call.run.job_id, attempt=call.run.attempt, state=JobState.CANCELLED)
            self._resolve(call, back)
            return
        assert call.offered not in self.back, "what was taken back never begins"
        assert call.offered.key not in {(run.job_id, run.attempt) for run in self.runs}, "an attempt runs once"
        assert not self.paused, "nothing begins in a tree whose pause is shown"
        assert self.task.state is not TaskState.BLOCKED, "nothing begins in a tree whose block is shown"
        killed = "delegation_killed" in self.events
        assert not killed or call.run.continuation is Continuation.FINALIZE, "nothing begins in a tree shown as killed"
        self.runs.append(call.run)
        call.row = row

    def _report(self, call: Call) -> None:
        assert call.row is not None
        call.reported = True
        begun = Begun(job_id=call.run.job_id, offer=call.run.offer, at=call.row.started_at)
        self._signal(self.tree, "report", HostReport(begun=(begun,)))

    def _stop(self, call: Call) -> None:
        """Stop an agent on order: only a kill at once or a move may have given one."""
        assert self.killed_at_once or call.run.job_id in self.moved, f"{call.run.job_id} is stopped without a reason"
        self.stopped.append(call.run.job_id)
        stopped = JobOutcome(job_id=call.run.job_id, attempt=call.run.attempt, state=JobState.CANCELLED, reason=STOPPED)
        self._end(call, stopped)

    def _end(self, call: Call, outcome: JobOutcome) -> None:
        assert call.row is not None
        outcome = outcome.model_copy(update={"begun_at": call.row.started_at})
        attempt_rows.close(self.store, call.row, outcome, {}, {})
        self.ended[call.run.job_id] = outcome
        self._resolve(call, outcome)

    def _resolve(self, call: Call, outcome: JobOutcome) -> None:
        self.at_host.remove(call)
        job = WorkflowActivationJob()
        job.resolve_activity.seq = call.seq
        job.resolve_activity.result.completed.result.CopyFrom(_CONVERTER.to_payload(outcome))
        call.execution.queue.append(job)

    def _resolve_cancelled(self, call: Call) -> None:
        self.at_host.remove(call)
        job = WorkflowActivationJob()
        job.resolve_activity.seq = call.seq
        _FAILURES.to_failure(CancelledError(), _CONVERTER, job.resolve_activity.result.cancelled.failure)
        call.execution.queue.append(job)

    # The server.

    def _execute(self, kind: str, workflow_id: str, arguments: list[Payload], **of_parent: Any) -> Execution:
        parent: Execution | None = of_parent.get("parent")
        above = ParentInfo("default", "run", parent.workflow_id) if parent else None
        execution = Execution(workflow_id, _LOOP.run(_made(_details(kind, workflow_id, above))), **of_parent)
        job = WorkflowActivationJob()
        job.initialize_workflow.CopyFrom(
            InitializeWorkflow(workflow_type=kind, workflow_id=workflow_id, arguments=arguments, randomness_seed=1)
        )
        execution.queue.append(job)
        self.executions[workflow_id] = execution
        return execution

    def _signal(self, execution: Execution, name: str, value: object) -> None:
        self._signal_payloads(execution, name, _CONVERTER.to_payloads([value]))

    def _signal_payloads(self, execution: Execution, name: str, values: list[Payload]) -> None:
        job = WorkflowActivationJob()
        job.signal_workflow.signal_name = name
        job.signal_workflow.input.extend(values)
        job.signal_workflow.originating_event_id = 1
        execution.queue.append(job)

    def _fire(self) -> None:
        execution, seq = self.timers.pop(0)
        job = WorkflowActivationJob()
        job.fire_timer.seq = seq
        execution.queue.append(job)

    def _advance(self, execution: Execution) -> None:
        """Do a workflow task: the workflow is told the next thing, and its commands are carried out."""
        self.now += 0.01
        activation = WorkflowActivation(run_id="run", jobs=[execution.queue.pop(0)], history_length=10)
        activation.timestamp.FromMicroseconds(int(self.now * 1e6))
        completion = execution.instance.activate(activation)
        assert not completion.HasField("failed"), completion.failed
        for command in completion.successful.commands:
            self._carry_out(execution, command)

    def _carry_out(self, execution: Execution, command: WorkflowCommand) -> None:
        job = WorkflowActivationJob()
        match command.WhichOneof("variant"):
            case "schedule_local_activity":
                local = command.schedule_local_activity
                self._hand_out(execution, local, is_local=True)
            case "schedule_activity" if command.schedule_activity.activity_type != "run_job":
                self._hand_out(execution, command.schedule_activity, is_local=False)
            case "schedule_activity":
                asked = command.schedule_activity
                (run,) = _CONVERTER.from_payloads(asked.arguments, [JobRun])
                self.at_host.append(Call(execution, asked.seq, run))
            case "request_cancel_activity":
                for call in self.at_host:
                    if (call.execution, call.seq) == (execution, command.request_cancel_activity.seq):
                        call.cancelled = True
            case "request_cancel_local_activity":
                if self._withdrawn(execution, command.request_cancel_local_activity.seq):
                    job.resolve_activity.seq = command.request_cancel_local_activity.seq
                    job.resolve_activity.is_local = True
                    _FAILURES.to_failure(CancelledError(), _CONVERTER, job.resolve_activity.result.cancelled.failure)
                    execution.queue.append(job)
            case "start_child_workflow_execution":
                child = command.start_child_workflow_execution
                job.resolve_child_workflow_execution_start.seq = child.seq
                job.resolve_child_workflow_execution_start.succeeded.run_id = "run"
                execution.queue.append(job)
                if child.workflow_type in _WORKFLOWS:
                    known = self.executions.get(child.workflow_id)
                    assert known is None or known.closed, "a job has one workflow at a time"
                    of_parent = {"parent": execution, "seq": child.seq}
                    self._execute(child.workflow_type, child.workflow_id, list(child.input), **of_parent)
            case "request_cancel_external_workflow_execution":
                cancel = command.request_cancel_external_workflow_execution
                job.resolve_request_cancel_external_workflow.seq = cancel.seq
                execution.queue.append(job)
                self._cancel(self.executions[cancel.workflow_execution.workflow_id])
            case "signal_external_workflow_execution":
                signal = command.signal_external_workflow_execution
                job.resolve_signal_external_workflow.seq = signal.seq
                execution.queue.append(job)
                other = self.executions[signal.workflow_execution.workflow_id]
                self._signal_payloads(other, signal.signal_name, list(signal.args))
            case "start_timer":
                self.timers.append((execution, command.start_timer.seq))
            case "cancel_timer":
                self.timers.remove((execution, command.cancel_timer.seq))
            case "complete_workflow_execution":
                done = job.resolve_child_workflow_execution.result.completed
                done.result.CopyFrom(command.complete_workflow_execution.result)
                self._close(execution, job)
            case "fail_workflow_execution":
                failed = job.resolve_child_workflow_execution.result.failed
                failed.failure.child_workflow_execution_failure_info.workflow_execution.workflow_id = (
                    execution.workflow_id
                )
                failed.failure.cause.CopyFrom(command.fail_workflow_execution.failure)
                self._close(execution, job)
            case "cancel_workflow_execution":
                cancelled = job.resolve_child_workflow_execution.result.cancelled
                cancelled.failure.child_workflow_execution_failure_info.workflow_execution.workflow_id = (
                    execution.workflow_id
                )
                cancelled.failure.cause.canceled_failure_info.SetInParent()
                self._close(execution, job)
            case "cancel_signal_workflow":
                pass  # it was sent at once
            case "set_patch_marker" | "upsert_workflow_search_attributes" | "modify_workflow_properties":
                pass
            case other_command:
                raise AssertionError(f"the stage does not know the command {other_command}")

    def _withdrawn(self, execution: Execution, seq: int) -> bool:
        """Withdraw a local activity that has not begun; return False if it has."""
        left = [each for each in self.locals if not each[0].endswith(f" of {execution.workflow_id} ({seq})")]
        withdrawn, self.locals = len(left) < len(self.locals), left
        return withdrawn

    def _cancel(self, execution: Execution) -> None:
        if not execution.closed:
            job = WorkflowActivationJob()
            job.cancel_workflow.reason = "cancelled"
            execution.queue.append(job)

    def _close(self, execution: Execution, job: WorkflowActivationJob) -> None:
        execution.closed = True
        if execution.parent is not None:
            job.resolve_child_workflow_execution.seq = execution.seq
            execution.parent.queue.append(job)

    # The worker.

    def _hand_out(self, execution: Execution, asked: Any, *, is_local: bool) -> None:
        """Have the worker carry out an activity, and tell the workflow what it returned."""
        name = f"{asked.activity_type} of {execution.workflow_id} ({asked.seq})"

        def do() -> None:
            self.locals[:] = [each for each in self.locals if each[0] != name]
            done = self._activity(execution, asked.activity_type, list(asked.arguments))
            job = WorkflowActivationJob()
            job.resolve_activity.seq, job.resolve_activity.is_local = asked.seq, is_local
            job.resolve_activity.result.completed.result.CopyFrom(_CONVERTER.to_payload(done))
            execution.queue.append(job)

        self.locals.append((name, do))

    def _activity(self, execution: Execution, name: str, arguments: list[Payload]) -> object:
        match name:
            case "take_back":
                (offer,) = _CONVERTER.from_payloads(arguments, [calls.OfferKey])
                return self._claimed(offer, self.recorder.take_back(offer))
            case "call_off":
                (order,) = _CONVERTER.from_payloads(arguments, [calls.CallOff])
                return self._claimed(order.offer, self.recorder.call_off(order))
            case "give_up":
                (order,) = _CONVERTER.from_payloads(arguments, [GiveUp])
                return self.recorder.give_up(order)
            case "place":
                return HOST
            case "request_cancel":
                self._cancel(execution)
            case _:
                pass
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, workflow_id=execution.workflow_id, workflow_run_id="run")
        if name == "keep_tree":
            environment.run(self.recorder.keep_tree, *_CONVERTER.from_payloads(arguments, [TreeMemory]))
        if name not in WRITERS:
            return None  # it marks a place in the history
        return environment.run(self.recorder.record, *_CONVERTER.from_payloads(arguments, [Records]))

    def _claimed(self, offer: calls.OfferKey, claim: calls.OfferClaim) -> calls.OfferClaim:
        if claim.begun_at is None:
            self.back.add(Offered(offer.job_id, offer.attempt, offer.offer))
        return claim


async def _made(details: WorkflowInstanceDetails) -> WorkflowInstance:
    return runner().create_instance(details)


def _details(kind: str, workflow_id: str, parent: ParentInfo | None) -> WorkflowInstanceDetails:
    now, nothing = datetime.now(UTC), dict[str, Any]()
    info = workflow.Info(
        attempt=1,
        continued_run_id=None,
        cron_schedule=None,
        execution_timeout=None,
        first_execution_run_id="run",
        headers=nothing,
        namespace="default",
        original_execution_run_id="run",
        parent=parent,
        root=None,
        priority=Priority.default,
        raw_memo=nothing,
        retry_policy=None,
        run_id="run",
        run_timeout=None,
        search_attributes=nothing,
        start_time=now,
        task_queue=HOST,
        task_timeout=timedelta(seconds=4),
        typed_search_attributes=TypedSearchAttributes.empty,
        workflow_id=workflow_id,
        workflow_start_time=now,
        workflow_type=kind,
    )
    return WorkflowInstanceDetails(
        payload_converter_factory=lambda: _CONVERTER,
        failure_converter_class=DefaultFailureConverter,
        interceptor_classes=[],
        defn=workflow._Definition.must_from_class(_WORKFLOWS[kind]),
        info=info,
        randomness_seed=1,
        extern_functions=_EXTERN,
        disable_eager_activity_execution=True,
        worker_level_failure_exception_types=[],
        patch_activation_callback=None,
        last_completion_result=Payloads(),
        last_failure=None,
    )
