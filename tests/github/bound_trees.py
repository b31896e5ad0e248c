"""Trees bound to a thread, made from rows."""

from typing import Any

from workflows.contract.models import Action, Decision
from workflows.github.bound_tree import BoundTree
from workflows.model.event_kinds import EventKind
from workflows.model.rounds import RoundKind
from workflows.model.rows import EventRecord, FailingRecord, JobRecord, QuestionRecord, RoundRecord, TaskRecord
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState, TaskState

ROOT = "job-0123456789ab"
NOON = 1_800_000_000.0
"""2027-01-15 08:00:00 UTC."""


def job(number: int = 0, **fields: Any) -> JobRecord:
    base: dict[str, Any] = {
        "job_id": f"{ROOT}.{number}" if number else ROOT,
        "root_job_id": ROOT,
        "parent_job_id": ROOT if number else None,
        "delegation_id": f"leg-{number}" if number else None,
        "delegation_depth": 1 if number else 0,
        "task_id": "task-0123456789ab",
        "repo": "acme/shop",
        "agent": "scout",
        "ephemeral": False,
        "runtime": "shell",
        "action": Action.IMPLEMENT if number else Action.ASK,
        "continuation": Continuation.NONE,
        "state": JobState.SUCCEEDED,
        "revision": 1,
        "queued_at": NOON,
        "ended_at": NOON + 60,
        "usage": Usage(input_tokens=1_000, output_tokens=200),
        "cost_usd": 0.25,
    }
    return JobRecord.model_validate(base | fields)


def task(state: TaskState = TaskState.OPEN, **fields: Any) -> TaskRecord:
    base: dict[str, Any] = {
        "task_id": "task-0123456789ab",
        "root_job_id": ROOT,
        "repo": "acme/shop",
        "title": "Make the login faster",
        "state": state,
        "revision": 1,
        "opened_at": NOON,
    }
    return TaskRecord.model_validate(base | fields)


def event(number: int, kind: EventKind, job_id: str = ROOT, message: str = "", **data: Any) -> EventRecord:
    return EventRecord(
        event_id=f"{ROOT}-e{number}",
        seq=number,
        job_id=job_id,
        root_job_id=ROOT,
        kind=kind,
        at=NOON + number,
        message=message or f"message {number}",
        data=data,
    )


def ask(number: int = 1, **fields: Any) -> RoundRecord:
    base: dict[str, Any] = {
        "round_id": f"{ROOT}-r{number}",
        "root_job_id": ROOT,
        "coordinator_id": ROOT,
        "job_id": ROOT,
        "task_id": "task-0123456789ab",
        "repo": "acme/shop",
        "number": number,
        "kind": RoundKind.ASK,
        "digest": "d",
        "revision": 1,
        "questions": (
            QuestionRecord(id="color", prompt="Which color?", choices=("red", "dark blue"), job_id=ROOT),
            QuestionRecord(id="build.size", prompt="How large?", job_id=f"{ROOT}.1", leg="build"),
        ),
        "verbs": ("answer", "extend"),
        "commands": (f'service resume {ROOT} answer "color: <text>" "build.size: <text>"',),
        "opened_at": NOON + 60,
        "expires_at": NOON + 86_460,
    }
    return RoundRecord.model_validate(base | fields)


def failure(number: int = 1, **fields: Any) -> RoundRecord:
    failing = FailingRecord(leg="build", job_id=f"{ROOT}.1", attempt=2, state=JobState.FAILED, reason="no compiler")
    verbs = ("retry", "continue", "abort", "extend")
    base: dict[str, Any] = {
        "kind": RoundKind.FAILURE,
        "questions": (),
        "failing": (failing,),
        "verbs": verbs,
        "commands": tuple(f"service resume {ROOT} {verb}" for verb in verbs),
    }
    return ask(number, **base | fields)


def tree(state: TaskState = TaskState.OPEN, **fields: Any) -> BoundTree:
    legs = (job(decision=Decision.APPROVED), job(1, state=JobState.RUNNING, ended_at=None))
    return BoundTree(**{"task": task(state), "jobs": legs, "owner": "octocat", **fields})
