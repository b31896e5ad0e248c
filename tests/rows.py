"""Rows of a tree as values: valid defaults, which tests override."""

import time
from typing import Any

from workflows.contract.models import Action
from workflows.model.rounds import RoundKind
from workflows.model.rows import EventRecord, JobRecord, QuestionRecord, RoundRecord, TaskRecord
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor

ROOT = "job-0123456789ab"
TASK = "task-0123456789ab"


def job(job_id: str = ROOT, **fields: Any) -> JobRecord:
    root = job_id.partition(".")[0]
    base: dict[str, Any] = {
        "job_id": job_id,
        "root_job_id": root,
        "parent_job_id": None if job_id == root else root,
        "delegation_id": None if job_id == root else "leg",
        "delegation_depth": 0 if job_id == root else 1,
        "task_id": f"task-{root[4:]}",
        "repo": "acme/shop",
        "agent": "scout",
        "ephemeral": False,
        "runtime": "shell",
        "action": Action.ASK,
        "continuation": Continuation.NONE,
        "state": JobState.RUNNING,
        "revision": 1,
        "queued_at": time.time(),
    }
    return JobRecord.model_validate(base | fields)


def task(root: str = ROOT, **fields: Any) -> TaskRecord:
    base: dict[str, Any] = {
        "task_id": f"task-{root[4:]}",
        "root_job_id": root,
        "repo": "acme/shop",
        "title": "look",
        "state": TaskState.OPEN,
        "revision": 1,
        "opened_at": 1.0,
    }
    return TaskRecord.model_validate(base | fields)


CUT: dict[str, Any] = {
    "state": TaskState.DONE,
    "waits_for": WaitsFor.START,
    "reason": "cut short: the lead asked for 60 parts, the limit is 16 (`max_delegation_width`)",
    "next": "write max_delegation_width = 60 below [orchestrate] in config.toml; then: service agent ask lead x",
    "ended_at": 9.0,
}
"""The fields of a task that a bound cut short."""


def event(number: int, job_id: str = ROOT, **fields: Any) -> EventRecord:
    root = job_id.partition(".")[0]
    base: dict[str, Any] = {
        "event_id": f"{root}-e{number}",
        "job_id": job_id,
        "root_job_id": root,
        "kind": "delegation_loop_warning",
        "at": float(number),
        "message": f"message {number}",
    }
    return EventRecord.model_validate(base | fields)


def round_(root: str = ROOT, **fields: Any) -> RoundRecord:
    base: dict[str, Any] = {
        "round_id": f"{root}-r1",
        "root_job_id": root,
        "coordinator_id": root,
        "job_id": root,
        "task_id": f"task-{root[4:]}",
        "repo": "acme/shop",
        "number": 1,
        "kind": RoundKind.ASK,
        "digest": "d",
        "revision": 1,
        "questions": (QuestionRecord(id="color", prompt="which?", job_id=root),),
        "verbs": ("answer", "extend"),
        "commands": (f"service resume {root} answer",),
        "opened_at": 1.0,
        "expires_at": 2.0,
    }
    return RoundRecord.model_validate(base | fields)
