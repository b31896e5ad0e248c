"""Rows of trees that were never run, as a worker would have written them."""

import time
from typing import Any

from sqlalchemy import insert

from activities.store import jobs, pipelines, repos, schema
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.model.rounds import RoundKind
from workflows.model.rows import EventRecord, JobRecord, QuestionRecord, Records, RoundRecord, TaskRecord
from workflows.model.states import Continuation, JobState, TaskState
from workflows.pipeline.read import read
from workflows.pipeline.text import Format

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


def write(service: Service, *rows: JobRecord | TaskRecord | EventRecord | RoundRecord) -> None:
    records = Records(
        task=next((each for each in rows if isinstance(each, TaskRecord)), None),
        jobs=tuple(each for each in rows if isinstance(each, JobRecord)),
        events=tuple(each for each in rows if isinstance(each, EventRecord)),
        rounds=tuple(each for each in rows if isinstance(each, RoundRecord)),
    )
    jobs.write(service.store, records)


def paused(service: Service, root: str = ROOT, **fields: Any) -> RoundRecord:
    """A tree that waits for an answer."""
    asked = round_(root, **fields)
    state = TaskState.AWAITING_HUMAN
    write(service, task(root, state=state), job(root, state=JobState.SUCCEEDED), asked)
    return asked


def payload(service: Service, job_id: str, told: dict[str, Any], **fields: Any) -> None:
    row = {"job_id": job_id, "attempt": 1, "host": "here", "run_dir": "/run", "started_at": 1.0, "payload": told}
    with service.store.begin() as connection:
        connection.execute(insert(schema.runs), row | fields)


def repo(service: Service, path: str = "/srv/checkouts/shop", host: str = "here", github: str = "") -> None:
    repos.put(service.store, "acme/shop", path, host, github)


RUN = "/v1/pipelines/{}/run"

TEXT = """
name: {name}
{more}
stages:
  - id: build
    kind: shell
    command: ["true"]
"""


def register(service: Service, name: str = "nightly", more: str = "repo: acme/shop") -> str:
    text = TEXT.format(name=name, more=more)
    pipelines.put(service.store, read(text, Format.YAML), text, Format.YAML)
    return RUN.format(name)
