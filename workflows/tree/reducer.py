"""The reducer of a tree: `reduce` handles every event and returns all commands."""

from typing import assert_never

from workflows.contract.storable import short_line
from workflows.model.event_kinds import Data, EventKind
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.rows import TaskRecord
from workflows.model.spend import Ledger
from workflows.model.states import JobState, TaskState
from workflows.policy import storable_rows
from workflows.policy.assignments import resolve, timeout_of_root
from workflows.policy.bounds import budget_line
from workflows.tree import continuation, finalize, job_offers, pause_rounds, reopen, resume
from workflows.tree.chains import Coordinator
from workflows.tree.commands import Command
from workflows.tree.dispatch import delegate
from workflows.tree.events import (
    Event,
    JobBegun,
    JobEnded,
    JobHeldUp,
    KillRequested,
    RecordRefused,
    ResumeRequested,
    RetryRequested,
    TimerFired,
    TreeStarted,
    TreeTakenUp,
)
from workflows.tree.foresee import foresee
from workflows.tree.job_end import end_job, retry_due
from workflows.tree.kill import kill
from workflows.tree.settle_batch import move_on
from workflows.tree.state import TreeInput, TreeMemory
from workflows.tree.step import Step


def root_run(start: TreeInput) -> JobRun:
    """Return the root job's first run, with model, effort and timeout resolved."""
    limit = timeout_of_root(start.assignment, start.settings.timeouts)
    asked = start.assignment.model_copy(update={"timeout_seconds": limit})
    return JobRun(
        job_id=start.root_job_id,
        root_job_id=start.root_job_id,
        task_id=start.task_id,
        repo=start.repo,
        assignment=resolve(asked, start.settings),
        branch_deps=start.branch_deps,
        line=start.line,
        merges=start.merges,
        budget=budget_line(start.settings.bounds, Ledger(), 0),
        require=start.require,
        prefer=start.prefer,
        read_only=start.read_only,
    )


def new_tree(start: TreeInput) -> TreeMemory:
    """Return the state of a tree that has not begun: one queued root job, one open task."""
    run = root_run(start)
    task = TaskRecord(
        task_id=start.task_id,
        root_job_id=start.root_job_id,
        repo=start.repo,
        title=start.title,
        state=TaskState.OPEN,
        revision=0,
        opened_at=start.created_at,
    )
    root = start.root_job_id
    return TreeMemory(
        input=start,
        task=task,
        now=start.created_at,
        jobs={root: continuation.record_of(run, start.created_at, job_offers.WAITS)},
        homes={root: root},
        coordinators={root: Coordinator(coordinator_id=root, run=run, job_id=root)},
    )


def reduce(state: TreeMemory, event: Event) -> list[Command]:
    """Apply an event to the state and return the commands. An event that does not apply changes nothing."""
    step = Step(state, event.now)
    match event:
        case TreeStarted():
            _start(step)
        case JobBegun():
            job_offers.begin_offer(step, event)
        case JobHeldUp():
            job_offers.held_up(step, event)
        case JobEnded():
            end_job(step, event.outcome)
        case TimerFired():
            retry_due(step, event.key)
            resume.fire_timer(step, event.key)
        case KillRequested():
            kill(step, short_line(event.actor), immediate=event.immediate)
        case RetryRequested():
            reopen.retry(step, short_line(event.actor), event.job_id)
        case ResumeRequested():
            heard = resume.resume(step, event)
        case TreeTakenUp():
            reopen.take_up(step, event.actor, event.why, event.since)
            _start(step)
        case RecordRefused():
            _shorten_rows(step, event.why, event.job_ids)
        case _ as never:
            assert_never(never)
    _advance(step)
    if isinstance(event, ResumeRequested) and event.waiting:
        step.answer(resume.answer(step, event.waiting, heard))
    return step.finish()


def _shorten_rows(step: Step, why: str, job_ids: tuple[str, ...]) -> None:
    """Shorten the rows that the store refused, and record an event."""
    state = step.state
    for job_id in job_ids:
        if job_id in state.jobs:
            step.add(storable_rows.reduce_row(state.jobs[job_id]))
        if job_id in state.first:
            state.first[job_id] = storable_rows.text(state.first[job_id])
    state.task = storable_rows.reduce_row(state.task)
    message = f"the store refused what was to be written; it was written shortened: {storable_rows.text(why)}"
    step.event(
        EventKind.RECORD_REFUSED, state.root_id, message, {"why": storable_rows.text(why), "jobs": list(job_ids)}
    )


def _start(step: Step) -> None:
    """Run the root job; for a recipe, dispatch its legs as if the root job had returned them."""
    state = step.state
    if state.started:
        return
    state.started = True
    step.task(TaskState.OPEN, "goes on")
    data: Data = {
        "task": state.input.task_id,
        "agent": state.input.assignment.worker.name,
        "action": state.input.assignment.action.value,
    }
    step.event(EventKind.TREE_STARTED, state.root_id, f"the task starts: {state.input.title}", data)
    if state.input.caveat:
        step.event(EventKind.TREE_CAVEAT, state.root_id, state.input.caveat, {"caveat": state.input.caveat})
    if state.input.legs:
        step.change(state.root_id, state=JobState.SUCCEEDED, reason="the legs are a recipe's", ended_at=step.now)
        recipe = JobOutcome(job_id=state.root_id, state=JobState.SUCCEEDED, delegations=state.input.legs)
        delegate(step, state.root, recipe)
        return
    step.story(state.jobs[state.root_id])
    job_offers.offer_coordinator(step, state.root.run)


def _advance(step: Step) -> None:
    """Advance all chains until nothing changes, then end the tree if it is finished. Do nothing in a closed tree."""
    if step.state.closed:
        return
    step.warn()
    _move(step)
    foresee(step, _move)
    pause_rounds.show_verbs(step)
    reopen.show_commands(step)
    reopen.show_blocks(step)
    step.warn()


def _move(step: Step) -> None:
    while any(move_on(step, chain) for chain in list(step.state.coordinators.values())):
        pass
    _end(step)


def _end(step: Step) -> None:
    state, pending = step.state, step.state.finalize
    if state.closed or not state.started:
        return
    if pending is not None and not pending.done and pending.job_id is None and not state.in_flight:
        if state.is_blocked:
            finalize.dismiss(step, pending.reason)
        else:
            continuation.enqueue_finalize(step, pending)
    over = pending is None or pending.done
    if over and state.task.state.is_closed and state.quiescent:
        finalize.close(step)
