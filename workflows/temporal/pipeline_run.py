"""The workflow of a pipeline run: feeds events to the reducer and carries out its commands (ruling K1)."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.workflow import ChildWorkflowHandle

with workflow.unsafe.imports_passed_through():
    from workflows.contract.models import Decision
    from workflows.model.orders import BY_HAND, SOMEBODY, Cancel, signature
    from workflows.model.workers import Assignment
    from workflows.pipeline.commands import (
        CancelStage,
        CloseRun,
        Command,
        PauseStage,
        RecordRows,
        ReopenTree,
        RunShell,
        RunTree,
        merge_records,
    )
    from workflows.pipeline.events import (
        AttentionChanged,
        CancelRequested,
        Event,
        RetryDue,
        RunStarted,
        StageEnded,
        StageReopened,
    )
    from workflows.pipeline.plan import RunInput, RunState, StageOutcome, StageState
    from workflows.pipeline.reducer import reduce
    from workflows.pipeline.stages import outcome_of
    from workflows.pipeline.state import new_run, restore, travelling
    from workflows.pipeline.view import details
    from workflows.policy import binding_words
    from workflows.policy.moving import Move
    from workflows.temporal import close_status, pipeline_calls, search
    from workflows.temporal.calls import TASK_TIMEOUT
    from workflows.temporal.children import Child
    from workflows.temporal.delegation_tree import DelegationTree
    from workflows.temporal.event_loop import Loop, shield_from_cancel
    from workflows.temporal.messages import Attention, Outcome, Reopened, TreeStart
    from workflows.temporal.messages_by_hand import UnreadableError, between_ours, cancel_read, takes_anything
    from workflows.temporal.moving import Moves
    from workflows.text.durations import clock
    from workflows.text.markdown import summary_line
    from workflows.tree.commands import CloseTree


@workflow.defn
class PipelineRun:
    """One run of a pipeline. The workflow has the pipeline's id, so only one runs at a time (ruling J4)."""

    @workflow.init
    def __init__(self, start: RunInput) -> None:
        again = Reopened.model_validate(start.again) if start.again else None
        self._run = restore(again.memory) if again else new_run(start)
        self._loop = Loop[Event, Command](lambda event: reduce(self._run, event))
        self._again: dict[str, TreeStart] = {}
        if again is None:
            self._loop.inbox.append(RunStarted(now=workflow.time()))
        else:
            self._loop.inbox.append(self._reopening(again))
        self._shown = RunState.RUNNING
        self._outcomes: dict[str, Outcome] = {}
        self._closed: CloseRun | None = None
        self._moves = Moves()

    @workflow.run
    async def run(self, start: RunInput) -> CloseRun:
        closed = await shield_from_cancel(
            self._live(), lambda: self.cancel(Cancel(run_id=self._run.input.run_id, actor="temporal"))
        )
        return await close_status.close(closed, closed.state, closed.reason)

    @workflow.signal(description="end the run: its commands and agents are stopped")
    @takes_anything
    def cancel(self, *sent: object) -> None:
        """Cancel the run. A message sent by hand may be empty; an unreadable one is refused, and shown in the run's
        details.
        """
        try:
            actor = cancel_read(sent, self._run.input.run_id, by_hand=self._run.input.settings.by_hand)
        except UnreadableError as error:
            self._run.last_refusal = f"{signature(SOMEBODY, BY_HAND)}, {clock(workflow.time())}: {error}"
            workflow.set_current_details(details(self._run))
            return
        self._loop.order(
            CancelRequested(now=workflow.time(), actor=actor), summary_line(f"order of {actor}: cancel the run")
        )

    @workflow.signal(description="a stage's tree begins or ends to wait for people")
    @between_ours(Attention)
    def attention(self, change: Attention) -> None:
        event = AttentionChanged(now=workflow.time(), job_id=change.job_id, waits_for=change.waits_for)
        now = f"waits for a person: {change.waits_for}" if change.waits_for else "waits for nobody any more"
        self._loop.order(event, summary_line(f"{change.job_id} {now}"))

    @workflow.signal(description="a job of a stage's blocked tree runs again")
    @between_ours(Reopened)
    def reopen(self, order: Reopened) -> None:
        self._loop.order(self._reopening(order), f"the stage {order.stage_id} goes on")

    def _reopening(self, order: Reopened) -> StageReopened:
        root = order.tree.input.root_job_id
        self._again[root] = order.tree
        return StageReopened(now=workflow.time(), stage_id=order.stage_id, job_id=root)

    @workflow.query(description="all the run knows; also of one that has ended")
    def memory(self) -> dict[str, Any]:
        return travelling(self._run)

    @workflow.signal(description="what a stage's tree that was cancelled or taken up has left")
    @between_ours(Outcome)
    def outcome(self, sent: Outcome) -> None:
        self._outcomes[sent.workflow_id] = sent

    @workflow.signal(description="a stage's host is lost or drained: offer its command elsewhere")
    @between_ours(Move)
    def move(self, order: Move) -> None:
        self._moves.order(order)

    async def _live(self) -> CloseRun:
        await self._loop.live(self._carry_out, lambda: self._closed is not None)
        # An order that comes while the run ends has nothing left to act on.
        for key in self._loop.tasks:
            self._loop.stop(key)
        if self._closed is None:
            raise AssertionError("a run's life ends with its end")
        return self._closed

    async def _carry_out(self, todo: list[Command]) -> None:
        """Write the rows first, so that a running stage can be looked up; then begin the other commands."""
        if rows := merge_records([command.records for command in todo if isinstance(command, RecordRows)]):
            await pipeline_calls.write(rows)
        self._show()
        for command in todo:
            self._begin(command)

    def _show(self) -> None:
        """Update the run's details in the web UI. Search attributes change only when a pause begins or ends, and at the
        end.
        """
        workflow.set_current_details(details(self._run))
        if self._run.state is not self._shown:
            self._shown = self._run.state
            waits = self._shown is RunState.AWAITING_HUMAN
            attention = search.ATTENTION.value_set("stage") if waits else search.ATTENTION.value_unset()
            workflow.upsert_search_attributes([search.STATE.value_set(self._shown.value), attention])

    def _begin(self, command: Command) -> None:
        spawn = self._loop.spawn
        match command:
            case RunShell(run=run):
                start = self._run.input
                work = pipeline_calls.attempt(run, start.host, self._moves, placed=start.placed)
                spawn(run.stage_id, work, lambda task: self._report_end(run.stage_id, run.attempt, task))
            case RunTree(stage_id=stage, attempt=attempt):
                first = TreeStart(input=command.tree, host=self._run.input.host, placed=self._run.input.placed)
                work = self._grow(stage, first, command.success)
                spawn(stage, work, lambda task: self._report_end(stage, attempt, task))
            case ReopenTree(stage_id=stage, attempt=attempt, job_id=job_id):
                work = self._grow(stage, self._again.pop(job_id), command.success)
                spawn(stage, work, lambda task: self._report_end(stage, attempt, task))
            case PauseStage(stage_id=stage, seconds=seconds, summary=summary):
                pause = workflow.sleep(timedelta(seconds=seconds), summary=summary)
                spawn(stage, pause, lambda task: self._due(stage, task))
            case CancelStage(stage_id=stage):
                self._loop.stop(stage)
            case CloseRun():
                self._closed = command
            case RecordRows():
                pass

    async def _grow(self, stage_id: str, tree: TreeStart, success: tuple[Decision, ...]) -> StageOutcome:
        """Run a stage's tree as a child workflow. When cancelled, the tree ends its own jobs, and still returns an
        outcome.
        """
        start, root, asked = self._run.input, tree.input.root_job_id, tree.input.assignment

        def begin() -> Awaitable[ChildWorkflowHandle[DelegationTree, CloseTree]]:
            return workflow.start_child_workflow(
                DelegationTree.run,
                tree,
                id=root,
                task_timeout=TASK_TIMEOUT,
                static_summary=summary_line(
                    f"{start.pipeline} / {stage_id}", f"{asked.worker.name} {asked.action}", tree.input.title
                ),
                static_details="\n\n".join([f"In a terminal: `service job tree {root} --watch`", *_on_github(asked)]),
                search_attributes=search.stage_attributes(tree.input, start.pipeline),
            )

        closed = await Child(root, CloseTree, begin, self._outcomes).run()
        return outcome_of(closed, success)

    def _report_end(self, stage_id: str, attempt: int, task: asyncio.Task[StageOutcome]) -> None:
        if lost := close_status.end_without_outcome(task):
            state = StageState.CANCELLED if lost.cancelled else StageState.FAILED
            outcome = StageOutcome(state=state, reason=lost.reason)
        else:
            outcome = task.result()
        self._loop.add(StageEnded(workflow.time(), stage_id, attempt, outcome))

    def _due(self, stage_id: str, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._loop.add(RetryDue(workflow.time(), stage_id))


def _on_github(asked: Assignment) -> list[str]:
    address = binding_words.address(asked.github, asked.pull_request, asked.issue, asked.web)
    return [f"On GitHub: {address}"] if address else []
