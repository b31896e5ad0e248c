"""What waits for somebody: `service attention` (rulings F6, B3)."""

from dataclasses import asdict, dataclass
from typing import Any

from activities.store import jobs as stored_jobs
from activities.store import outbox, rounds
from activities.store import waiting as stored
from bridge.operations import branches, hosts
from bridge.operations.hosts import AbsentHost
from bridge.operations.service import Service
from workflows.model.rows import JobRecord, RoundRecord, TaskRecord

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


def find(service: Service) -> Attention:
    """What `service attention` lists."""
    rounds_open = rounds.open_rounds(service.store)
    roots = {each.root_job_id for each in rounds_open}
    tasks, used = stored_jobs.tasks_of(service.store, roots), stored.spent(service.store, roots)
    flagged = stored_jobs.some(service.store, ids=stored.unroutable(service.store))
    conflicts = tuple(branches.ways_out(service))
    shown = {way.root_job_id for way in conflicts}
    return Attention(
        waiting=tuple(
            WaitingTree(each, tasks.get(each.root_job_id), **asdict(used.get(each.root_job_id, stored.Spent())))
            for each in rounds_open
        ),
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
