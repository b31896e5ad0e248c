"""What waits for somebody: `service attention` (rulings F6, B3)."""

from dataclasses import asdict, dataclass
from typing import Any

from activities.store import jobs as stored_jobs
from activities.store import outbox, rounds
from bridge.operations import branches, hosts
from bridge.operations.hosts import AbsentHost
from bridge.operations.service import Service
from workflows.model.rows import JobRecord, RoundRecord, TaskRecord
from workflows.model.states import TaskState

MOST_LISTED = 100


@dataclass(frozen=True)
class WaitingTree:
    """A tree that waits for a person."""

    round: RoundRecord
    task: TaskRecord | None
    tokens: int
    cost_usd: float
    price_assumed: bool


@dataclass(frozen=True)
class Attention:
    """Everything that wants a person, oldest first."""

    waiting: tuple[WaitingTree, ...]
    preflight_failed: tuple[JobRecord, ...]
    undelivered: tuple[tuple[outbox.Notification, outbox.Delivery], ...]
    conflicts: tuple[branches.WayOut, ...] = ()
    blocked: tuple[TaskRecord, ...] = ()
    """For any other reason."""
    hosts: tuple[AbsentHost, ...] = ()
    """That jobs wait for, whose workers have not been seen for a minute."""

    @property
    def number(self) -> int:
        """How many things that is."""
        parts = (self.waiting, self.preflight_failed, self.undelivered, self.conflicts, self.blocked, self.hosts)
        return sum(map(len, parts))


def find(service: Service) -> Attention:
    """What `service attention` lists."""
    waiting = []
    for each in rounds.open_rounds(service.store):
        tree = stored_jobs.tree(service.store, each.root_job_id)
        tokens, cost = sum(job.usage.total for job in tree), sum(job.cost_usd for job in tree)
        guess = any(job.price_assumed for job in tree)
        waiting.append(WaitingTree(each, stored_jobs.task_of(service.store, each.root_job_id), tokens, cost, guess))
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
