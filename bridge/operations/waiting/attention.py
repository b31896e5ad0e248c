"""What waits for somebody: `service attention` (rulings F6, B3)."""

from dataclasses import asdict, dataclass
from typing import Any

from activities.store import outbox
from activities.store.waiting import Kind, Spent
from bridge.operations.branches import branches
from bridge.operations.github.trouble import Trouble
from bridge.operations.jobs.hosts import AbsentHost
from bridge.operations.service import Service
from bridge.operations.waiting import waiting
from workflows.model.rows import JobRecord, RoundRecord, TaskRecord

MOST_LISTED = 100
"""Of the blocked tasks, the last ones."""


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
    github: tuple[Trouble, ...] = ()
    """What could not be written to GitHub, and an account that gets no answer."""


def find(service: Service) -> Attention:
    """What `service attention` lists: what the page lists, sorted by why it waits."""
    found = waiting.every(service)
    tasks, used = found.tasks, found.spent
    blocked = [tasks[item.root_job_id] for item in found.items if item.place.kind is Kind.BLOCKED]
    conflicts = tuple(branches.ways_out(service, [task.root_job_id for task in blocked]))
    shown = {way.root_job_id for way in conflicts}
    return Attention(
        waiting=tuple(
            WaitingTree(item.round, tasks.get(item.root_job_id), **asdict(used.get(item.root_job_id, Spent())))
            for item in found.items
            if item.round
        ),
        preflight_failed=tuple(item.job for item in found.items if item.job),
        undelivered=tuple(item.told for item in found.items if item.told),
        conflicts=conflicts,
        blocked=tuple(task for task in blocked[-MOST_LISTED:] if task.root_job_id not in shown),
        hosts=tuple(item.host for item in found.items if item.host),
        github=tuple(item.github for item in found.items if item.github),
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
        "github": [asdict(trouble) for trouble in found.github],
        "blocked": [task.model_dump(mode="json", exclude={"revision"}) for task in found.blocked],
    }
