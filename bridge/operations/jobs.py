"""Starting jobs and reading them back."""

import secrets
import time
from dataclasses import dataclass
from typing import Any

from activities.store import jobs as stored
from activities.store import runs as stored_runs
from bridge.operations import agents, repos
from bridge.operations.service import Service
from workflows.contract.models import WRITE_POLICIES, Action
from workflows.errors import NotFoundError, RefusedError, UnreachableError, UsageError
from workflows.tree import ids
from workflows.tree.jobs import JobState, Worker
from workflows.tree.records import EventRecord, JobRecord, TaskRecord

TITLE_LENGTH = 80
MESSAGE_LIMIT = 1024 * 1024


@dataclass(frozen=True)
class Order:
    """What a person asks an agent to do."""

    agent: str
    action: str
    message: str
    repo: str
    model: str | None = None
    effort: str | None = None


@dataclass(frozen=True)
class Detail:
    """Everything there is to say about one job."""

    job: JobRecord
    task: TaskRecord | None
    payload: dict[str, Any] | None
    diagnostics: dict[str, Any] | None
    worktree: str | None


async def start(service: Service, order: Order) -> str:
    """Start a tree for one order; either it exists in full, or nothing was recorded."""
    from activities.temporal import connect
    from bridge.operations import trees

    worker, host = _route(service, order)
    job_id = ids.root_id(time.time_ns() // 1_000_000, secrets.randbits(ids.RANDOM_BITS))
    client = await connect(service.home, service.settings)
    tree = trees.first_words(service, order, worker, job_id, host)
    try:
        await trees.start(client, service.settings, tree)
    except trees.START_FAULTS as error:
        raise UnreachableError(f"Temporal did not take the job: {error}", "service daemon status") from None
    stored.write(service.store, trees.queued(tree.input))
    return job_id


def get(service: Service, job_id: str) -> JobRecord:
    """One job, or a sentence that says there is none."""
    if ids.root_of(job_id) is None:
        raise UsageError(
            f"{job_id!r} is not a job id; they look like job-0c5e2v7q9a3k or job-0c5e2v7q9a3k.2", "service job list"
        )
    job = stored.get(service.store, job_id)
    if job is None:
        raise NotFoundError(f"no job {job_id}", "service job list")
    return job


def find(
    service: Service, *, repo: str | None, agent: str | None, state: str | None, limit: int, roots_only: bool = False
) -> list[JobRecord]:
    """The newest jobs that match."""
    if state is not None and state not in list(JobState):
        raise UsageError(f"{state!r} is not a job state; they are {', '.join(JobState)}")
    states = (JobState(state),) if state else ()
    return stored.find(service.store, repo=repo, agent=agent, states=states, limit=limit, roots_only=roots_only)


def events(service: Service, job_id: str, *, after: int = 0) -> list[EventRecord]:
    """A tree's lifecycle events for its root, one job's for any other."""
    job = get(service, job_id)
    only = None if job.job_id == job.root_job_id else job.job_id
    return stored.events(service.store, job.root_job_id, job_id=only, after=after)


def detail(service: Service, job_id: str) -> Detail:
    """One job with its result, its observation and the evidence of its last run."""
    job = get(service, job_id)
    runs = stored_runs.of_job(service.store, job_id)
    last = runs[-1] if runs else None
    return Detail(
        job=job,
        task=stored.task_of(service.store, job.root_job_id),
        payload=last.payload if last else None,
        diagnostics=last.diagnostics if last else None,
        worktree=last.worktree if last else None,
    )


def as_json(detail: Detail) -> dict[str, Any]:
    """What `--json` prints."""
    job = detail.job.model_dump(mode="json", exclude={"revision"})
    task = detail.task.model_dump(mode="json", exclude={"revision"}) if detail.task else None
    return job | {"task": task, "payload": detail.payload, "diagnostics": detail.diagnostics}


def _route(service: Service, order: Order) -> tuple[Worker, str]:
    """The gates of a job started by a person: the same that a delegation meets."""
    if not order.message.strip():
        raise UsageError(
            "the message is empty", f'service agent {order.action} {order.agent} "MESSAGE" --repo {order.repo}'
        )
    if len(order.message.encode(errors="surrogatepass")) > MESSAGE_LIMIT:
        raise UsageError("the message is larger than 1 MiB; put it into the repository and name the file")
    agent = agents.get(service, order.agent)
    repo = repos.get(service, order.repo)
    if repo.name not in agent.repos:
        raise RefusedError(
            f"{order.agent} is not allowed on {repo.name}", f"service agent allow {order.agent} {repo.name}"
        )
    if order.action not in agent.worker.capabilities:
        able = ", ".join(agent.worker.capabilities)
        raise RefusedError(f"{order.agent} cannot {order.action}; it can {able}", "service agent list")
    if order.action == Action.IMPLEMENT and agent.worker.autonomy_policy not in WRITE_POLICIES:
        raise RefusedError(f"{order.agent} has no write policy", f"service agent show {order.agent}")
    return agent.worker, repo.host
