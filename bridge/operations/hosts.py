"""What waits for a host whose worker is not there: which host, since when it has not been seen, what to type."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from activities.store import hosts as stored
from activities.store import jobs as stored_jobs
from bridge.operations.service import Service
from workflows.model.rows import JobRecord
from workflows.policy.hosts import HostSeen, lacks_worker, way_back
from workflows.policy.moments import clock


@dataclass(frozen=True)
class AbsentHost:
    """A host that jobs have waited for, for a minute and longer (ruling B3)."""

    host: str
    says: str
    next: str
    waiting: tuple[str, ...]
    """The jobs that have not ended, those that wait longest first."""


def every(service: Service) -> list[stored.Host]:
    """Every host whose worker was ever seen; none while there is no store."""
    if not service.settings.store.url and not service.home.store.exists():
        return []
    return stored.every(service.store)


def as_json(host: stored.Host) -> dict[str, Any]:
    """What `--json` prints."""
    return asdict(host) | {"has_worker": not lacks_worker(host.seen, time.time())}


def told(service: Service, jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """The jobs; where one has not ended and its host has no worker, that is the reason it stands still."""
    found = _of(service, jobs)
    return [with_reason(job, found.get(job.root_job_id)) for job in jobs]


def with_reason(job: JobRecord, host: HostSeen | None) -> JobRecord:
    """One job as it stands, with regard to its host."""
    if host is None or job.state in stored_jobs.ENDED or not lacks_worker(host, time.time()):
        return job
    return job.model_copy(update={"reason": reason(host), "next": way_back(host.name)})


def reason(host: HostSeen) -> str:
    """Why its jobs stand still."""
    if host.seen_at is None:
        return f"its host {host.name} has no worker: none was ever seen"
    if host.stopped_at is not None:
        return f"its host {host.name} has no worker: it was stopped at {clock(host.stopped_at)}"
    return f"its host {host.name} has no worker: not seen since {clock(host.seen_at)}"


def _of(service: Service, jobs: Sequence[JobRecord]) -> dict[str, HostSeen]:
    return stored.of_trees(service.store, {job.root_job_id for job in jobs if job.state not in stored_jobs.ENDED})
