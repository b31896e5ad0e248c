"""The rows of a small tree."""

from workflows.contract.models import Action
from workflows.model.rows import EventRecord, JobRecord, TaskRecord
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState, TaskState

ROOT = "job-0123456789ab"


def job(job_id: str = ROOT, revision: int = 1, state: JobState = JobState.QUEUED, at: float = 1.0) -> JobRecord:
    return JobRecord(
        job_id=job_id,
        root_job_id=ROOT,
        parent_job_id=None,
        delegation_id=None,
        delegation_depth=0,
        task_id="task-0123456789ab",
        repo="acme/shop",
        agent="scout",
        ephemeral=False,
        runtime="shell",
        action=Action.ASK,
        continuation=Continuation.NONE,
        state=state,
        revision=revision,
        queued_at=at,
        usage=Usage(input_tokens=3, output_tokens=4),
    )


def task(revision: int = 1, state: TaskState = TaskState.OPEN) -> TaskRecord:
    return TaskRecord(
        task_id="task-0123456789ab",
        root_job_id=ROOT,
        repo="acme/shop",
        title="t",
        state=state,
        revision=revision,
        opened_at=1.0,
    )


EVENT = EventRecord(
    event_id=f"{ROOT}-e3", job_id=f"{ROOT}.2", root_job_id=ROOT, kind="round_opened", at=12.5, message="Which? - é"
)
