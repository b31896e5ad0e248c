"""Interim reducer: a tree that does not delegate."""

from workflows.tree.commands import CloseTree, Command, Record, RunCoordinator
from workflows.tree.events import Event, JobEnded, TreeStarted
from workflows.tree.jobs import Continuation, JobRun, JobState, TaskState, Usage
from workflows.tree.records import EventRecord, JobRecord, Records, TaskRecord
from workflows.tree.state import TreeState


def reduce(state: TreeState, event: Event) -> list[Command]:
    i = state.input
    match event:
        case TreeStarted():
            run = JobRun(
                job_id=i.root_job_id,
                root_job_id=i.root_job_id,
                task_id=i.task_id,
                repo=i.repo,
                worker=i.worker,
                action=i.action,
                prompt=i.prompt,
                model=i.model,
                effort=i.effort,
            )
            job, task = _records(state, 1)
            return [
                Record(records=Records(task=task, jobs=(job,))),
                RunCoordinator(run=run, summary=f"{i.action}: {i.worker.name}"),
            ]
        case JobEnded(outcome=o):
            job, task = _records(state, 2)
            job = job.model_copy(
                update={
                    "state": o.state,
                    "reason": o.reason,
                    "decision": o.decision,
                    "summary": o.summary,
                    "usage": o.usage,
                    "ended_at": event.now,
                    "result_digest": o.result_digest,
                    "branch": o.branch,
                    "head_sha": o.head_sha,
                }
            )
            ts = {JobState.SUCCEEDED: TaskState.DONE, JobState.CANCELLED: TaskState.CANCELLED}.get(
                o.state, TaskState.BLOCKED
            )
            task = task.model_copy(update={"state": ts, "ended_at": event.now})
            events = tuple(
                EventRecord(
                    event_id=f"{i.root_job_id}-e{n}",
                    job_id=o.job_id,
                    root_job_id=i.root_job_id,
                    kind=x.kind,
                    at=event.now,
                    message=x.message,
                    data=x.data,
                )
                for n, x in enumerate(o.notices, 1)
            )
            return [
                Record(records=Records(task=task, jobs=(job,), events=events)),
                CloseTree(
                    root_job_id=i.root_job_id,
                    task_state=ts,
                    decision=o.decision,
                    summary=o.summary,
                    reason=o.reason,
                    jobs=1,
                    usage=o.usage,
                    cost_usd=0.0,
                ),
            ]
    return []


def _records(state: TreeState, revision: int) -> tuple[JobRecord, TaskRecord]:
    i = state.input
    job = JobRecord(
        job_id=i.root_job_id,
        root_job_id=i.root_job_id,
        parent_job_id=None,
        delegation_id=None,
        delegation_depth=0,
        task_id=i.task_id,
        repo=i.repo,
        agent=i.worker.name,
        ephemeral=False,
        runtime=i.worker.runtime,
        action=i.action,
        continuation=Continuation.NONE,
        state=JobState.QUEUED,
        revision=revision,
        queued_at=i.created_at,
        usage=Usage(),
    )
    task = TaskRecord(
        task_id=i.task_id,
        root_job_id=i.root_job_id,
        repo=i.repo,
        title=i.title,
        state=TaskState.OPEN,
        revision=revision,
        opened_at=i.created_at,
    )
    return job, task
