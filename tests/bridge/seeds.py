"""Rows of trees that never ran, as a worker would have written them."""

from typing import Any

from sqlalchemy import insert

from activities.store import job_rows, schema, tree_rows
from activities.store.registry import pipeline_rows, repo_rows
from bridge.operations.service import Service
from tests.rows import ROOT, TASK, event, job, round_, task
from tests.sealed import seal
from workflows.contract.models import Action
from workflows.model import ids
from workflows.model.long_texts import Text
from workflows.model.rows import EventRecord, JobRecord, Records, RoundRecord, TaskRecord
from workflows.model.states import JobState, TaskState
from workflows.model.workers import Assignment, Worker
from workflows.pipeline.read import read
from workflows.pipeline.syntax import Format
from workflows.tree.state import TreeInput

__all__ = ["ROOT", "TASK", "begun", "event", "job", "paused", "payload", "register", "repo", "round_", "task", "write"]


def write(service: Service, *rows: JobRecord | TaskRecord | EventRecord | RoundRecord) -> None:
    records = Records(
        task=next((row for row in rows if isinstance(row, TaskRecord)), None),
        jobs=tuple(row for row in rows if isinstance(row, JobRecord)),
        events=tuple(row for row in rows if isinstance(row, EventRecord)),
        rounds=tuple(row for row in rows if isinstance(row, RoundRecord)),
    )
    job_rows.write(service.store, records)


def paused(service: Service, root: str = ROOT, **fields: Any) -> RoundRecord:
    """Seed a tree that waits for an answer."""
    asked = round_(root, **fields)
    state = TaskState.AWAITING_HUMAN
    write(service, task(root, state=state), job(root, state=JobState.SUCCEEDED), asked)
    return asked


def begun(service: Service, base: str, root: str = ROOT) -> None:
    """Seed the start of a tree at this commit."""
    tree_rows.begin(service.store, start(service, base, root), "here")


def start(service: Service, base: str, root: str = ROOT) -> TreeInput:
    """Return the start of a tree at this commit."""
    lead = Assignment(
        worker=Worker(name="lead", runtime="shell"), action=Action.ASK, prompt=Text(inline="do it"), base=base
    )
    return TreeInput(
        root_job_id=root,
        task_id=ids.task_id(root),
        repo="acme/shop",
        assignment=lead,
        created_at=1.0,
        settings=service.settings.snapshot(),
    )


def payload(service: Service, job_id: str, content: dict[str, Any], **fields: Any) -> None:
    row = {"job_id": job_id, "attempt": 1, "host": "here", "run_dir": "/run", "started_at": 1.0, "payload": content}
    with service.store.begin() as connection:
        connection.execute(insert(schema.attempts), row | fields)
    seal(service.store)


def repo(service: Service, path: str = "/srv/checkouts/shop", host: str = "here", github: str = "") -> None:
    repo_rows.put(service.store, "acme/shop", path, host, github)


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
    pipeline_rows.put(service.store, read(text, Format.YAML), text, Format.YAML)
    return RUN.format(name)
