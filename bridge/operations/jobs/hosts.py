"""Jobs that wait for a host without a worker: which host, since when, and what to type."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TypeVar

from activities.store.registry import hosts as stored
from activities.store.registry import repos
from bridge.operations.service import Service
from workflows.model.rows import JobRecord
from workflows.model.states import JobState
from workflows.policy.host_availability import HostSeen, lacks_worker, way_back, way_to_move, way_to_room
from workflows.policy.placement import NO_HOST
from workflows.text.durations import clock

J = TypeVar("J", bound=JobRecord)


@dataclass(frozen=True)
class AbsentHost:
    """A host that jobs have waited for, for a minute and longer (ruling B3): it has no worker, or starts nothing."""

    host: str
    says: str
    next: str
    waiting: tuple[str, ...]
    """The jobs that have not ended, those that wait longest first."""
    unplaced: bool = False
    """True if no host can run the jobs: they wait for any that can."""


class HostState(StrEnum):
    """The state of a host, in a word for people."""

    WORKS = "works"
    HELD = "held"
    """Its worker starts nothing at the moment, and says why."""
    DRAINING = "draining"
    """It takes no new jobs."""
    STOPPED = "stopped"
    UNSEEN = "unseen"
    """Not seen for a minute, and not stopped."""
    LOST = "lost"
    """Its jobs go on elsewhere."""


@dataclass(frozen=True)
class Host(stored.Host):
    """A host, its state, and whether its worker was seen in the last minute."""

    has_worker: bool = False
    state: HostState = HostState.UNSEEN

    @property
    def last_sign_at(self) -> float:
        """Return when it was last seen or stopped, by the clock of this machine."""
        return time.time() - self.now + (self.stopped_at or self.seen_at)


def every(service: Service) -> list[Host]:
    """Return every host whose worker was ever seen; none while there is no store."""
    if not service.settings.store.url and not service.home.store.exists():
        return []
    return [
        Host(**asdict(host), has_worker=not lacks_worker(host.seen), state=_state(host))
        for host in stored.every(service.store)
    ]


def _state(host: stored.Host) -> HostState:
    if host.lost_at is not None:
        return HostState.LOST
    if host.stopped_at is not None:
        return HostState.STOPPED
    if lacks_worker(host.seen):
        return HostState.UNSEEN
    if host.draining_at is not None:
        return HostState.DRAINING
    return HostState.HELD if host.held else HostState.WORKS


def with_reasons(service: Service, jobs: Sequence[J], known: Mapping[str, HostSeen] | None = None) -> list[J]:
    """Return the jobs, each one that waits for its host with that as its reason, and when it goes on elsewhere (Q5).

    The hosts of the jobs are read from the store, unless they are known.
    """
    if known is None:
        known = stored.of_jobs(service.store, {job.job_id for job in jobs if not job.state.ended})
    remotes = set[str]()
    if service.settings.is_fleet and any(map(lacks_worker, known.values())):
        remotes = {repo.name for repo in repos.every(service.store) if repo.remote}
    return [_with_way_elsewhere(service, job, known.get(job.job_id), remotes) for job in jobs]


def with_reason(job: J, host: HostSeen | None) -> J:
    """Return the job, with its host as the reason if it waits for the host."""
    if host is None or not stands_still(host, job.state, job.reason):
        return job
    return job.model_copy(update={"reason": reason(host), "next": way_on(host)})


def _with_way_elsewhere(service: Service, job: J, host: HostSeen | None, remotes: Collection[str]) -> J:
    waits = with_reason(job, host)
    if waits is job or host is None or not lacks_worker(host) or not service.settings.is_fleet:
        return waits
    after = service.settings.fleet.move_after
    if job.repo not in remotes:
        return waits.model_copy(update={"reason": f"{waits.reason}; only it has {job.repo}, which has no remote"})
    if host.seen_at is not None and after:
        when = f"{waits.reason}; the job goes on elsewhere after {clock(host.seen_at + after)}"
        return waits.model_copy(update={"reason": when, "next": f"{waits.next}; or sooner: {way_to_move(host.name)}"})
    return waits.model_copy(update={"next": f"{waits.next}; or elsewhere: {way_to_move(host.name)}"})


def absence_of(service: Service, name: str) -> str:
    """Return why a job on this repository would wait, if only hosts without a worker have it; empty otherwise."""
    repo = repos.get(service.store, name) if service.settings.is_fleet else None
    if repo is None or repo.remote:
        return ""
    known = {host.name: host.seen for host in stored.every(service.store)}
    seen = [known.get(host, HostSeen(host)) for host in repo.checkouts]
    if not seen or not all(map(lacks_worker, seen)):
        return ""
    return f"{reason(seen[0])}; only it has {name}, so the job waits ({way_on(seen[0])})"


def stands_still(host: HostSeen, state: JobState, why: str) -> bool:
    """Return whether a job waits for its host: for a worker, or for room on its disk. One that no host can run waits
    for no single host; `why` is its reason.
    """
    is_queued = state is JobState.QUEUED
    if state.ended or (is_queued and why.startswith(NO_HOST)):
        return False
    return lacks_worker(host) or (is_queued and bool(host.held))


def way_on(host: HostSeen) -> str:
    """Return the command after which the jobs that wait for the host continue."""
    return way_back(host.name) if lacks_worker(host) else way_to_room(host)


def reason(host: HostSeen) -> str:
    """Return the reason why the host's jobs wait."""
    if host.held and not lacks_worker(host):
        return f"its host {host.name} starts nothing: {host.held}"
    if host.seen_at is None:
        return f"its host {host.name} has no worker: none was ever seen"
    if host.stopped_at is not None:
        return f"its host {host.name} has no worker: it was stopped at {clock(host.stopped_at)}"
    return f"its host {host.name} has no worker: not seen since {clock(host.seen_at)}"
