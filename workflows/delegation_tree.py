"""The workflow of a delegation tree: feeds what happens to the reducer and carries out what it asks for."""

import asyncio
from collections import deque
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from workflows import calls, search
    from workflows.delegation import Delegation, DelegationInput
    from workflows.tree import commands as c
    from workflows.tree import events as e
    from workflows.tree.jobs import JobOutcome, JobRun, JobState, Wire
    from workflows.tree.reducer import reduce
    from workflows.tree.state import TreeInput, TreeState, new_tree
    from workflows.tree.view import details


class TreeStart(Wire):
    """What a tree's workflow begins with: its input, or the state an earlier run of it left."""

    input: TreeInput
    host: str
    """The host whose checkout the tree works on."""
    state: TreeState | None = None


class Kill(Wire):
    """An operator ends the tree (ruling G2)."""

    actor: str
    immediate: bool = False


@workflow.defn
class DelegationTree:
    """One tree: the root job and every continuation run in here, delegations as children."""

    @workflow.init
    def __init__(self, start: TreeStart) -> None:
        self._host = start.host
        self._state = start.state or new_tree(start.input)
        self._inbox: deque[e.Event] = deque()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closed: c.CloseTree | None = None
        if start.state is None:
            self._inbox.append(e.TreeStarted(now=workflow.time()))

    @workflow.run
    async def run(self, start: TreeStart) -> c.CloseTree:
        while self._closed is None:
            await self._wait_for_events()
            for command in self._reduce_pending():
                await self._carry_out(command)
            workflow.set_current_details(details(self._state, workflow.time()))
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.upsert_search_attributes([search.STATE.value_set(self._closed.task_state.value)])
        return self._closed

    @workflow.signal(description="graceful end of the tree; immediate also stops running agents")
    def kill(self, order: Kill) -> None:
        self._inbox.append(e.KillRequested(now=workflow.time(), actor=order.actor, immediate=order.immediate))

    async def _wait_for_events(self) -> None:
        try:
            await workflow.wait_condition(lambda: bool(self._inbox))
        except asyncio.CancelledError:
            # A cancel from outside is an order to end at once, not a reason to leave the agents running.
            self._inbox.append(e.KillRequested(now=workflow.time(), actor="temporal", immediate=True))

    def _reduce_pending(self) -> list[c.Command]:
        todo: list[c.Command] = []
        while self._inbox:
            todo += reduce(self._state, self._inbox.popleft())
        return todo

    async def _carry_out(self, command: c.Command) -> None:
        match command:
            case c.Record(records=records):
                await calls.write(records)
            case c.RunCoordinator(run=run):
                self._start(run.job_id, self._coordinate(run))
            case c.RunChild(run=run, summary=summary):
                self._start(run.job_id, self._delegate(run, summary))
            case c.StartTimer(key=key, seconds=seconds, summary=summary):
                self._start(key, self._sleep(key, seconds, summary))
            case c.CancelJob(job_id=key) | c.CancelTimer(key=key):
                if task := self._tasks.get(key):
                    task.cancel()
            case c.CloseTree():
                self._closed = command

    def _start(self, key: str, work: "asyncio._CoroutineLike[None]") -> None:
        self._tasks[key] = asyncio.create_task(work)

    async def _coordinate(self, run: JobRun) -> None:
        self._ended(await calls.attempt(run, self._host))

    async def _delegate(self, run: JobRun, summary: str) -> None:
        try:
            outcome = await workflow.execute_child_workflow(
                Delegation.run,
                DelegationInput(run=run, host=self._host),
                id=run.job_id,
                static_summary=summary,
                search_attributes=search.attributes(run, JobState.RUNNING.value),
            )
        except ChildWorkflowError as error:
            state = JobState.CANCELLED if is_cancelled_exception(error) else JobState.FAILED
            outcome = JobOutcome(job_id=run.job_id, attempt=run.attempt, state=state, reason=str(error.cause or error))
        self._ended(outcome)

    def _ended(self, outcome: JobOutcome) -> None:
        self._tasks.pop(outcome.job_id, None)
        self._inbox.append(e.JobEnded(now=workflow.time(), outcome=outcome))

    async def _sleep(self, key: str, seconds: float, summary: str) -> None:
        await workflow.sleep(timedelta(seconds=seconds), summary=summary)
        self._tasks.pop(key, None)
        self._inbox.append(e.TimerFired(now=workflow.time(), key=key))
