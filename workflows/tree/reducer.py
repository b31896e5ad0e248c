"""The reducer: everything that can happen to a tree goes through `reduce`, and everything it wants comes out of it."""

from typing import assert_never

from workflows.policy.answers import one_line
from workflows.policy.resolution import Means, means_of
from workflows.tree import continuing, finalizing, offers, reduced, reopening, resuming, story, taking_up, ways_out
from workflows.tree.commands import Command
from workflows.tree.dispatch import delegate
from workflows.tree.ending import job_ended, retry_due
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
from workflows.tree.jobs import JobOutcome, JobRun, JobState, TaskState
from workflows.tree.payloads import Data, EventKind
from workflows.tree.records import TaskRecord
from workflows.tree.settling import move_on
from workflows.tree.state import Coordinator, TreeInput, TreeState
from workflows.tree.step import Step

_OVER = frozenset({TaskState.DONE, TaskState.CANCELLED, TaskState.BLOCKED})


def root_run(start: TreeInput) -> JobRun:
    """The root job as its host is told of it, with model and effort resolved."""
    means = means_of(Means(start.model, start.effort, start.timeout_seconds), start.worker, start.settings)
    return JobRun(
        job_id=start.root_job_id,
        root_job_id=start.root_job_id,
        task_id=start.task_id,
        repo=start.repo,
        worker=start.worker,
        action=start.action,
        prompt=start.prompt,
        model=means.model,
        effort=means.effort,
        phase=start.phase,
        timeout_seconds=means.timeout_seconds,
        base=start.base,
        branch_deps=start.branch_deps,
        pull_request=start.pull_request,
    )


def new_tree(start: TreeInput) -> TreeState:
    """A tree that has not begun: one queued root job, one open task."""
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
    return TreeState(
        input=start,
        task=task,
        now=start.created_at,
        jobs={root: continuing.record_of(run, start.created_at, "waits for a worker")},
        homes={root: root},
        coordinators={root: Coordinator(coordinator_id=root, run=run, job_id=root)},
    )


def reduce(state: TreeState, event: Event) -> list[Command]:
    """Take one event in, change the state, say what must be done. Total: an event without sense changes nothing."""
    step = Step(state, event.now)
    match event:
        case TreeStarted():
            _start(step)
        case JobBegun():
            offers.begun(step, event)
        case JobHeldUp():
            offers.held_up(step, event)
        case JobEnded():
            job_ended(step, event.outcome)
        case TimerFired():
            retry_due(step, event.key)
            resuming.timer_fired(step, event.key)
        case KillRequested():
            finalizing.kill(step, one_line(event.actor), immediate=event.immediate)
        case RetryRequested():
            reopening.retry(step, one_line(event.actor), event.job_id)
        case ResumeRequested():
            resuming.resume(step, event)
        case TreeTakenUp():
            taking_up.take_up(step, event.actor, event.why, event.since)
            _start(step)
        case RecordRefused():
            reduced.refused(step, event.why, event.job_ids)
        case _ as never:
            assert_never(never)
    _advance(step)
    return step.finish()


def _start(step: Step) -> None:
    """Run the root; or, for a recipe, dispatch its legs as if the root had returned them."""
    state = step.state
    if state.started:
        return
    state.started = True
    step.task(TaskState.OPEN, "goes on", "")
    data: Data = {"task": state.input.task_id, "agent": state.input.worker.name, "action": state.input.action.value}
    step.event(EventKind.TREE_STARTED, state.root_id, f"the tree starts: {state.input.title}", data)
    if state.input.caveat:
        step.event("tree_caveat", state.root_id, state.input.caveat, {"caveat": state.input.caveat})
    if state.input.legs:
        step.change(state.root_id, state=JobState.SUCCEEDED, reason="the legs are a recipe's", ended_at=step.now)
        recipe = JobOutcome(job_id=state.root_id, state=JobState.SUCCEEDED, delegations=state.input.legs)
        delegate(step, state.root, recipe)
        return
    step.event(*story.of_job(state.jobs[state.root_id]))
    offers.offer_coordinator(step, state.root.run)


def _advance(step: Step) -> None:
    """Until nothing moves by itself any more; then the tree's own end, if it has come. In a closed one nothing does."""
    if step.state.closed:
        return
    step.warn()
    while any(move_on(step, chain) for chain in list(step.state.coordinators.values())):
        pass
    _end(step)
    ways_out.show(step)
    step.warn()


def _end(step: Step) -> None:
    state, pending = step.state, step.state.finalize
    if state.closed or not state.started:
        return
    if pending is not None and not pending.done and pending.job_id is None and not state.in_flight:
        if state.blocked:
            finalizing.dismiss(step, pending.reason)
        else:
            continuing.finalize(step, pending)
    over = pending is None or pending.done
    if over and state.task.state in _OVER and state.quiescent:
        finalizing.close(step)
