"""Everything that waits for a person, as `service attention` shows it (rulings F6, B3)."""

from dataclasses import asdict, dataclass

from activities.store import outbox
from activities.store.waiting import Kind, Spent
from bridge.operations.branches import branches
from bridge.operations.github.trouble import Trouble
from bridge.operations.jobs.hosts import AbsentHost
from bridge.operations.jobs.views import JobSummary, Shown, Task
from bridge.operations.service import Service
from bridge.operations.waiting import waiting
from workflows.model.rows import RoundRecord, TaskRecord
from workflows.policy.stalls import WAYS, Stall

MOST_LISTED = 100
"""The number of blocked tasks listed, newest first kept."""


class WaitingRound(Shown, RoundRecord):
    """A round that waits for a person, the title of its task, and what its tree has spent."""

    title: str
    tokens: int
    cost_usd: float
    price_assumed: bool


@dataclass(frozen=True)
class Undelivered:
    """A notification that a channel does not take."""

    notification_id: str
    job_id: str
    channel: str
    attempts: int
    error: str
    message: str
    since: float


@dataclass(frozen=True)
class Stalled(Stall):
    """Something that stands still, its sentence, and the commands that help."""

    message: str = ""
    next: tuple[str, ...] = WAYS


@dataclass(frozen=True)
class Attention:
    """The content of `service attention`, each kind with the oldest first."""

    waiting: tuple[WaitingRound, ...]
    preflight_failed: tuple[JobSummary, ...]
    undelivered: tuple[Undelivered, ...]
    conflicts: tuple[branches.WayOut, ...]
    hosts: tuple[AbsentHost, ...]
    """Hosts that jobs wait for, and whose workers have sent no heartbeat for a minute."""
    github: tuple[Trouble, ...]
    """Failed writes to GitHub, and an account that is refused."""
    stalled: tuple[Stalled, ...]
    """What stands still, and the commands that help."""
    blocked: tuple[Task, ...]
    """For any other reason than a conflict."""


def find(service: Service) -> Attention:
    """Return what the dashboard's page lists, sorted by why it waits."""
    found = waiting.every(service)
    tasks, used = found.tasks, found.spent
    blocked = [tasks[item.root_job_id] for item in found.items if item.place.kind is Kind.BLOCKED]
    conflicts = tuple(branches.ways_out(service, [task.root_job_id for task in blocked]))
    shown = {way.root_job_id for way in conflicts}
    return Attention(
        waiting=tuple(
            _waiting(item.round, tasks.get(item.root_job_id), used.get(item.root_job_id, Spent()))
            for item in found.items
            if item.round
        ),
        preflight_failed=tuple(JobSummary.of(item.job) for item in found.items if item.job),
        undelivered=tuple(_undelivered(*item.told) for item in found.items if item.told),
        conflicts=conflicts,
        hosts=tuple(item.host for item in found.items if item.host),
        github=tuple(item.github for item in found.items if item.github),
        stalled=tuple(Stalled(**vars(item.stall), message=item.stall.says) for item in found.items if item.stall),
        blocked=tuple(Task.of(task) for task in blocked[-MOST_LISTED:] if task.root_job_id not in shown),
    )


def _waiting(record: RoundRecord, task: TaskRecord | None, spent: Spent) -> WaitingRound:
    return WaitingRound(**dict(record), title=task.title if task else "", **asdict(spent))


def _undelivered(told: outbox.Notification, how: outbox.Delivery) -> Undelivered:
    return Undelivered(
        told.notification_id, told.job_id, how.channel, how.attempts, how.error, told.message, since=told.at
    )
