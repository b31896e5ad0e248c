"""Jobs as the bridge shows them (ruling J6): never prompts, environment, host paths or process ids."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from activities.store import attempt_rows, round_rows
from activities.store.registry import repo_rows
from bridge.http.wire.schemas import Job, Links
from bridge.machine.daemon_state import DaemonState, read_state
from bridge.machine.watched_file import WatchedFile
from bridge.operations.jobs import hosts, jobs
from bridge.operations.jobs.views import Tree
from bridge.operations.service import Service
from workflows.model.rows import JobRecord
from workflows.model.states import Continuation

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class WrittenJob:
    """A job as the serialised body of a response."""

    body: bytes
    ended: bool

    @property
    def tag(self) -> str:
        """The ETag: a digest of the body."""
        return f'"{blake2b(self.body, digest_size=12).hexdigest()}"'


def job(service: Service, job_id: str) -> WrittenJob:
    """Return a job with its result, its observation, and its open round."""
    [record] = hosts.with_reasons(service, [jobs.get(service, job_id)])
    run = attempt_rows.get(service.store, job_id, record.attempt)
    payload = (run.payload if run else None) or {}
    rounds = round_rows.open_rounds(service.store, root=record.root_job_id)
    parts = {
        "result": payload.get("service_result"),
        "observation": payload.get("result_observation"),
        "round": next((row for row in rounds if job_id in (row.coordinator_id, row.job_id)), None),
        "links": _links(service, record),
    }
    text = Job.model_validate(record.__dict__ | parts, from_attributes=True).model_dump_json()
    repo = repo_rows.get(service.store, record.repo)
    text = _without(text, (str(service.home.root), *(repo.checkouts.values() if repo else ())))
    return WrittenJob(text.encode(), ended=record.ended_at is not None)


def tree(service: Service, job_id: str) -> Tree:
    """Return a whole tree: its task, every job, its bounds."""
    return hide_paths(service, Tree.of(jobs.tree(service, job_id)))


def hide_paths(service: Service, view: M) -> M:
    """Replace the paths of this home and of the registered checkouts in a view."""
    text = view.model_dump_json()
    without = without_paths(service, text)
    return view if without == text else type(view).model_validate_json(without)


def view_of(service: Service, kind: type[M], result: object) -> M:
    """Convert an operation's result to this view, with the host's paths replaced."""
    return hide_paths(service, kind.model_validate(result, from_attributes=True))


def without_paths(service: Service, text: str) -> str:
    """Replace the paths of this home and of the registered checkouts in JSON text."""
    checkouts = (path for repo in repo_rows.every(service.store) for path in repo.checkouts.values())
    return _without(text, (str(service.home.root), *checkouts))


def _without(text: str, paths: Iterable[str]) -> str:
    """Replace the given paths in JSON text."""
    present = tuple(path for path in paths if len(path) > 1 and _in_json(path) in text)
    return _pattern(present).sub("[path]", text) if present else text


@lru_cache(maxsize=64)
def _pattern(paths: tuple[str, ...]) -> re.Pattern[str]:
    quoted = (re.escape(_in_json(path)) for path in sorted(paths, key=len, reverse=True))
    # `-task-`: the worktree beside a checkout in which a conflict is resolved (`branches.by_hand`).
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(quoted)})(?:(?![\w-])|(?=-task-))")


@lru_cache(maxsize=1024)
def _in_json(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)[1:-1]


def _links(service: Service, record: JobRecord) -> Links:
    """Return the links of a job; the Temporal link of a continuation leads to its tree's workflow, that of any other
    job to its own.
    """
    state = _daemon_state(service.home.daemon_state).value()
    web_ui = f"{state.ui_url}/namespaces/{state.namespace}/workflows" if state and state.ui_url else None
    workflow = record.job_id if record.continuation is Continuation.NONE else record.root_job_id
    here = f"/v1/jobs/{record.job_id}"
    temporal = f"{web_ui}/{workflow}" if web_ui else None
    return Links(self=here, tree=f"{here}/tree", events=f"{here}/events", temporal=temporal)


@lru_cache(maxsize=64)
def _daemon_state(path: Path) -> WatchedFile[DaemonState | None]:
    """Return the cached reader of the daemon's state file: every shown job's link to the web UI needs it."""
    return WatchedFile(path, lambda _: read_state(path))
