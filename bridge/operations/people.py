"""Where trees meet people: ending a pause, and what waits for somebody (rulings F4, F6)."""

import time
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from activities.store import jobs as stored_jobs
from activities.store import outbox, rounds
from bridge.operations import branches, hosts, jobs, verdicts
from bridge.operations.hosts import Absent
from bridge.operations.service import Service
from workflows.errors import NotFoundError, RefusedError
from workflows.policy.verbs import refuse_length
from workflows.tree.jobs import TaskState
from workflows.tree.records import JobRecord, RoundRecord, TaskRecord

MOST_LISTED = 100
_OVER = frozenset({TaskState.DONE, TaskState.CANCELLED})


@dataclass(frozen=True)
class Resume:
    """What a person says to a pause, whatever the surface (ruling F6)."""

    job_id: str
    verb: str
    text: str = ""
    actor: str = ""
    channel: str = "cli"
    round: int | None = None
    digest: str = ""
    request_id: str = ""
    partial: bool = False
    """Questions are left unanswered on purpose."""
    other: bool = False
    """A text that is none of the choices is the answer."""


@dataclass(frozen=True)
class Verdict:
    """What became of it."""

    message: str
    applied: bool
    """False: no worker is there; the words are kept by Temporal and take effect when one comes."""


@dataclass(frozen=True)
class Waiting:
    """A tree that waits for a person."""

    round: RoundRecord
    task: TaskRecord | None
    tokens: int
    cost_usd: float
    price_assumed: bool


@dataclass(frozen=True)
class Attention:
    """Everything that wants a person, oldest first."""

    waiting: tuple[Waiting, ...]
    preflight_failed: tuple[JobRecord, ...]
    undelivered: tuple[tuple[outbox.Notification, outbox.Delivery], ...]
    conflicts: tuple[branches.WayOut, ...] = ()
    blocked: tuple[TaskRecord, ...] = ()
    """For any other reason."""
    hosts: tuple[Absent, ...] = ()
    """That jobs wait for, whose workers have not been seen for a minute."""


def open_rounds(service: Service, root: str) -> list[RoundRecord]:
    """Whoever a tree waits for, the oldest first."""
    return rounds.open_rounds(service.store, root=root)


def open_round(service: Service, job_id: str) -> RoundRecord:
    """The one open round a job id stands for; a sentence when there is none, or several."""
    root = jobs.get(service, job_id).root_job_id
    found = rounds.open_rounds(service.store, root=root)
    mine = [each for each in found if job_id in (each.coordinator_id, each.job_id)] or found
    if len(mine) == 1:
        return mine[0]
    if not mine:
        over = verdicts.last_words(service, root, job_id)
        nothing = f"nothing in the tree {root} waits for a person"
        raise NotFoundError(f"{nothing}; {over}" if over else nothing, f"service job tree {root}")
    names = ", ".join(each.coordinator_id for each in mine)
    raise NotFoundError(f"several coordinators of the tree {root} wait: {names}", "service attention")


async def resume(service: Service, order: Resume) -> Verdict:
    """Say something to a pause; a verdict at once where a worker can give it."""
    from bridge.operations import resuming

    verdicts.check_verb(order)
    order = order if order.request_id else _with_id(order)
    root = jobs.get(service, order.job_id).root_job_id
    if refusal := refuse_length(order.text):
        raise RefusedError(refusal.message, f"service job tree {order.job_id}")
    found = rounds.open_rounds(service.store, root=root)
    if not found and (task := stored_jobs.task_of(service.store, root)) and task.state in _OVER:
        raise RefusedError(verdicts.too_late(service, root, order), f"service job tree {root}")
    verdicts.check_answer(order, found)
    return await resuming.resume(service, root, order)


def attention(service: Service) -> Attention:
    """What `service attention` lists."""
    waiting = []
    for each in rounds.open_rounds(service.store):
        tree = stored_jobs.tree(service.store, each.root_job_id)
        tokens, cost = sum(job.usage.total for job in tree), sum(job.cost_usd for job in tree)
        guess = any(job.price_assumed for job in tree)
        waiting.append(Waiting(each, stored_jobs.task_of(service.store, each.root_job_id), tokens, cost, guess))
    flagged = [
        job
        for job in stored_jobs.find(service.store, preflight_failed=True, limit=MOST_LISTED)
        if _still_unroutable(service, job)
    ]
    conflicts = tuple(branches.ways_out(service))
    shown = {way.root_job_id for way in conflicts}
    return Attention(
        waiting=tuple(waiting),
        preflight_failed=tuple(sorted(flagged, key=lambda job: job.queued_at)),
        undelivered=tuple(outbox.undelivered(service.store)),
        conflicts=conflicts,
        blocked=tuple(
            task
            for task in stored_jobs.blocked_tasks(service.store, limit=MOST_LISTED)
            if task.may_go_on and task.root_job_id not in shown
        ),
        hosts=tuple(hosts.absent(service)),
    )


def _still_unroutable(service: Service, flagged: JobRecord) -> bool:
    """Its task goes on, and no later job of its coordinator has handed out work."""
    task = stored_jobs.task_of(service.store, flagged.root_job_id)
    if task is None or task.state in {TaskState.DONE, TaskState.CANCELLED}:
        return False
    tree, chain = stored_jobs.tree(service.store, flagged.root_job_id), {flagged.job_id}
    for job in tree:  # in dispatch order: a continuation comes after the job it continues
        if job.delegation_id is None and job.parent_job_id in chain:
            chain.add(job.job_id)
    return not any(job.delegation_id and job.parent_job_id in chain for job in tree)


def as_json(found: Attention) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "waiting": [
            each.round.model_dump(mode="json", exclude={"revision"})
            | {"title": each.task.title if each.task else "", "tokens": each.tokens}
            | {"cost_usd": each.cost_usd, "price_assumed": each.price_assumed}
            for each in found.waiting
        ],
        "preflight_failed": [job.model_dump(mode="json", exclude={"revision"}) for job in found.preflight_failed],
        "undelivered": [
            {
                "notification_id": told.notification_id,
                "job_id": told.job_id,
                "channel": how.channel,
                "attempts": how.attempts,
                "error": how.error,
                "message": told.message,
                "since": told.at,
            }
            for told, how in found.undelivered
        ],
        "conflicts": [asdict(way) for way in found.conflicts],
        "hosts": [asdict(host) for host in found.hosts],
        "blocked": [task.model_dump(mode="json", exclude={"revision"}) for task in found.blocked],
    }


def _with_id(order: Resume) -> Resume:
    return Resume(**{**order.__dict__, "request_id": f"{order.channel}-{int(time.time())}-{uuid4().hex[:12]}"})
