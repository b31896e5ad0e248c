"""The workflow of a delegation tree: feeds what happens to the reducer and carries out what it asks for."""

import asyncio
from collections import deque
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from workflows import calls, search
    from workflows.delegation import Delegation, DelegationInput
    from workflows.tree import commands as c
    from workflows.tree import events as e
    from workflows.tree.jobs import JobOutcome, JobRun, JobState, TaskState, Wire
    from workflows.tree.reducer import new_tree, reduce
    from workflows.tree.reopening import refuse_retry
    from workflows.tree.state import TreeInput, TreeState
    from workflows.tree.view import details


class TreeStart(Wire):
    """What a tree's workflow begins with: its input alone, or the state an earlier run of it left, and what is next."""

    input: TreeInput
    host: str
    """The host whose checkout the tree works on."""
    state: TreeState | None = None
    retry: e.RetryRequested | None = None
    """The order that re-opens a blocked tree (ruling D4)."""
    coordinators: tuple[c.RunCoordinator, ...] = ()
    children: tuple[c.RunChild, ...] = ()
    """What the run before wanted done when it continued as new."""
    history_limit: int | None = None
    """Continue as new from this many events on; None leaves it to the server's advice."""


class Kill(Wire):
    """An operator ends the tree (ruling G2)."""

    actor: str
    immediate: bool = False


class Retry(Wire):
    """An operator runs a job again (ruling D4)."""

    actor: str
    job_id: str


@workflow.defn
class DelegationTree:
    """One tree: the root job and every continuation run in here, delegations as children."""

    @workflow.init
    def __init__(self, start: TreeStart) -> None:
        self._start = start
        self._state = start.state or new_tree(start.input)
        self._inbox: deque[e.Event] = deque()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closed: c.CloseTree | None = None
        if start.state is None:
            self._inbox.append(e.TreeStarted(now=workflow.time()))
        elif start.retry is not None:
            self._inbox.append(start.retry)

    @workflow.run
    async def run(self, start: TreeStart) -> c.CloseTree:
        await self._carry_out([*start.coordinators, *start.children])
        while self._closed is None:
            await self._wait_for_events()
            await self._carry_out(self._reduce_pending())
            workflow.set_current_details(details(self._state))
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.upsert_search_attributes([search.STATE.value_set(self._closed.task_state.value)])
        return self._closed

    @workflow.signal(description="graceful end of the tree; immediate also stops running agents")
    def kill(self, order: Kill) -> None:
        self._inbox.append(e.KillRequested(now=workflow.time(), actor=order.actor, immediate=order.immediate))

    @workflow.update(description="run a failed job again")
    def retry(self, order: Retry) -> None:
        self._inbox.append(e.RetryRequested(now=workflow.time(), actor=order.actor, job_id=order.job_id))

    @retry.validator
    def _may_retry(self, order: Retry) -> None:
        if self._closed is not None:
            raise ApplicationError("the tree is closing; try again", type="Closing", non_retryable=True)
        if why_not := refuse_retry(self._state, order.job_id):
            raise ApplicationError(why_not, type="Refused", non_retryable=True)

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

    async def _carry_out(self, todo: list[c.Command]) -> None:
        """Rows first: whoever sees a job run can look it up."""
        for command in todo:
            if isinstance(command, c.Record):
                await calls.write(command.records)
            elif isinstance(command, c.CloseTree):
                # An order that came in the same step may have re-opened the tree.
                self._closed = command if self._state.closed else None
        if self._closed and self._closed.task_state is TaskState.BLOCKED:
            await calls.keep(self._state)
        if self._should_continue_as_new(todo):
            await self._continue_as_new(todo)
        for command in todo:
            self._begin(command)

    def _begin(self, command: c.Command) -> None:
        match command:
            case c.RunCoordinator(run=run):
                self._run(run.job_id, self._coordinate(run))
            case c.RunChild(run=run, summary=summary):
                self._run(run.job_id, self._delegate(run, summary))
            case c.StartTimer(key=key, seconds=seconds, summary=summary):
                self._run(key, self._sleep(key, seconds, summary))
            case c.CancelJob(job_id=key) | c.CancelTimer(key=key):
                if task := self._tasks.get(key):
                    task.cancel()
            case c.Record() | c.CloseTree():
                pass

    def _should_continue_as_new(self, todo: list[c.Command]) -> bool:
        """Only where nothing runs: a child would be taken down with its parent's run."""
        if self._closed or self._tasks or any(isinstance(command, c.StartTimer) for command in todo):
            return False
        info, limit = workflow.info(), self._start.history_limit
        return info.is_continue_as_new_suggested() or (limit is not None and info.get_current_history_length() >= limit)

    async def _continue_as_new(self, todo: list[c.Command]) -> None:
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._inbox:
            return
        workflow.continue_as_new(
            self._start.model_copy(
                update={
                    "state": self._state,
                    "retry": None,
                    "coordinators": tuple(command for command in todo if isinstance(command, c.RunCoordinator)),
                    "children": tuple(command for command in todo if isinstance(command, c.RunChild)),
                }
            )
        )

    def _run(self, key: str, work: "asyncio._CoroutineLike[None]") -> None:
        self._tasks[key] = asyncio.create_task(work)

    async def _coordinate(self, run: JobRun) -> None:
        self._ended(await calls.attempt(run, self._start.host))

    async def _delegate(self, run: JobRun, summary: str) -> None:
        try:
            outcome = await workflow.execute_child_workflow(
                Delegation.run,
                DelegationInput(run=run, host=self._start.host),
                id=run.job_id,
                static_summary=summary,
                search_attributes=search.attributes(run, JobState.RUNNING.value),
            )
        except ChildWorkflowError as error:
            state = JobState.CANCELLED if is_cancelled_exception(error) else JobState.FAILED
            reason = f"its workflow ended without an outcome: {error.cause or error}"
            outcome = JobOutcome(job_id=run.job_id, attempt=run.attempt, state=state, reason=reason)
        self._ended(outcome)

    def _ended(self, outcome: JobOutcome) -> None:
        self._tasks.pop(outcome.job_id, None)
        self._inbox.append(e.JobEnded(now=workflow.time(), outcome=outcome))

    async def _sleep(self, key: str, seconds: float, summary: str) -> None:
        await workflow.sleep(timedelta(seconds=seconds), summary=summary)
        self._tasks.pop(key, None)
        self._inbox.append(e.TimerFired(now=workflow.time(), key=key))
