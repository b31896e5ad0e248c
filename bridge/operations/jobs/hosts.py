"""The hosts that share a store: which jobs wait for a host, why, and what to type; and requests to another host's
bridge (ruling Q3).

Data that is only in another host's home is requested from its bridge. If that fails, the error names the host and the
command to type on it. No caller waits longer than a few seconds.
"""

import json
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlencode

from activities.sealing import seal_key
from activities.sealing.host_calls import HEADER, HostCall
from activities.store import queries
from activities.store.registry import host_rows, repo_rows
from bridge.operations.service import Service
from workflows.contract.storable import short_line
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UnreachableError, UsageError
from workflows.model.rows import JobRecord
from workflows.model.states import JobState
from workflows.policy.host_availability import HostSeen, lacks_worker, way_back, way_to_move, way_to_room
from workflows.policy.placement import NO_HOST
from workflows.text.durations import clock

if TYPE_CHECKING:
    import httpx


PREFIX = "/hosts/"
"""The path below which a bridge answers other hosts."""
NEXT = "x-next-cursor"
"""The header with the offset behind a piece of raw output."""

CONNECT_SECONDS, ANSWER_SECONDS = 2.0, 5.0
LONGEST_ANSWER = 32 * 1024 * 1024
"""Largest answer of another host, in bytes."""
AWAY_SECONDS = 5.0
"""Seconds for which a host that did not answer is not asked again: an open page asks every second."""

_away: dict[str, tuple[float, str]] = {}
"""For each address that did not answer: the time until which it is not asked again, and the reason."""


@dataclass(frozen=True)
class OtherHost:
    """A client for another host's bridge. Its errors name the subject and the command to type on that host."""

    service: Service
    name: str
    subject: str
    command: str

    def text(self, path: str, **query: object) -> str:
        """Return the answer as text."""
        return self._get(path, query)[0].decode(errors="replace")

    def raw(self, path: str, cursor: int) -> Iterator[tuple[bytes, int]]:
        """Yield pieces of a raw output, each with the offset behind it, until no more is there."""
        while True:
            piece, headers = self._get(path, {"cursor": cursor})
            behind = int(headers.get(NEXT, cursor))
            if behind <= cursor:
                return
            yield piece, behind
            cursor = behind

    def _get(self, path: str, query: dict[str, object]) -> "tuple[bytes, httpx.Headers]":
        host = host_rows.get(self.service.store, self.name)
        if host is None or not host.address:
            raise RefusedError(f"{self.subject} on the host {self.name}, which other hosts cannot ask", self._there)
        parameters = urlencode({name: value for name, value in query.items() if value is not None})
        target = f"{PREFIX}{path}{'?' if parameters else ''}{parameters}"
        status, body, headers = self._answer(host.address, target)
        if status != 200:
            self._refuse(host.address, status, body)
        return body, headers

    def _answer(self, address: str, target: str) -> "tuple[int, bytes, httpx.Headers]":
        import httpx

        until, why = _away.get(address, (0.0, ""))
        if time.monotonic() < until:
            raise self._unreachable(address, why)
        deadline, body = time.monotonic() + ANSWER_SECONDS, bytearray()
        try:
            with _client().stream("GET", f"{address.rstrip('/')}{target}", headers=self._headers(target)) as answer:
                for piece in answer.iter_bytes():
                    body += piece
                    if time.monotonic() > deadline or len(body) > LONGEST_ANSWER:
                        raise httpx.ReadTimeout("its answer is too long, or takes too long")
                return answer.status_code, bytes(body), answer.headers
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = str(error) or type(error).__name__
            _away[address] = time.monotonic() + AWAY_SECONDS, why
            raise self._unreachable(address, why) from None

    def _headers(self, target: str) -> dict[str, str]:
        key = seal_key.read(self.service.home.root)
        if key is None:
            why = "this home has no seal key, which proves to other hosts that it is of this store"
            raise RefusedError(f"{self.subject} on the host {self.name}; {why}", self._there)
        now = queries.now(self.service.store)
        return {HEADER: HostCall(self.service.settings.host, self.name, target, now).header(key)}

    def _unreachable(self, address: str, why: str) -> UnreachableError:
        message = f"{self.subject} on the host {self.name}, which does not answer at {address}: {short_line(why, 200)}"
        return UnreachableError(message, self._there)

    def _refuse(self, address: str, status: int, body: bytes) -> NoReturn:
        """Raise the other host's refusal as an error of this host, with the other host's name."""
        kinds: dict[int, type[ServiceError]] = {400: UsageError, 404: NotFoundError, 409: RefusedError}
        try:
            refusal = str(json.loads(body)["error"])
        except (ValueError, TypeError, LookupError):
            refusal = f"status {status}"
        message, _, hint = refusal.partition("; try: ")
        if status not in kinds:
            raise self._unreachable(address, message)
        raise kinds[status](f"{message} (says the host {self.name})", hint or self._there)

    @property
    def _there(self) -> str:
        return f"ssh {self.name} {self.command}"


@dataclass(frozen=True)
class AbsentHost:
    """A host for which jobs have waited a minute or longer, because it has no worker or starts nothing (ruling B3)."""

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
    """Its worker starts no jobs at the moment, for a reason that it reports."""
    DRAINING = "draining"
    """It takes no new jobs."""
    STOPPED = "stopped"
    UNSEEN = "unseen"
    """Not seen for a minute, and not stopped."""
    LOST = "lost"
    """Declared lost: its jobs continue on other hosts."""


@dataclass(frozen=True)
class HostView(host_rows.HostRow):
    """A host, its state, and whether its worker was seen in the last minute."""

    has_worker: bool = False
    state: HostState = HostState.UNSEEN

    @property
    def last_sign_at(self) -> float:
        """Return the time, by this machine's clock, at which the host was last seen or stopped."""
        return time.time() - self.now + (self.stopped_at or self.seen_at)


def every(service: Service) -> list[HostView]:
    """Return every host whose worker was ever seen; none while there is no store."""
    if not service.settings.store.url and not service.home.store.exists():
        return []
    return [
        HostView(**asdict(host), has_worker=not lacks_worker(host.seen), state=_state(host))
        for host in host_rows.every(service.store)
    ]


def _state(host: host_rows.HostRow) -> HostState:
    if host.lost_at is not None:
        return HostState.LOST
    if host.stopped_at is not None:
        return HostState.STOPPED
    if lacks_worker(host.seen):
        return HostState.UNSEEN
    if host.draining_at is not None:
        return HostState.DRAINING
    return HostState.HELD if host.held else HostState.WORKS


def with_reasons(service: Service, jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """Return the jobs; those that wait for their host get that as their reason, with the time when they move to another
    host (Q5).
    """
    known = host_rows.of_jobs(service.store, {job.job_id for job in jobs if not job.state.has_ended})
    remotes = set[str]()
    if service.settings.is_fleet and any(map(lacks_worker, known.values())):
        remotes = {repo.name for repo in repo_rows.every(service.store) if repo.remote}
    return [_with_way_elsewhere(service, job, known.get(job.job_id), remotes) for job in jobs]


def with_reason(job: JobRecord, host: HostSeen | None) -> JobRecord:
    """Return the job, with its host as the reason if it waits for the host."""
    if host is None or not stands_still(host, job.state, job.reason):
        return job
    return job.model_copy(update={"reason": reason(host), "next": way_on(host)})


def _with_way_elsewhere(service: Service, job: JobRecord, host: HostSeen | None, remotes: Collection[str]) -> JobRecord:
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
    repo = repo_rows.get(service.store, name) if service.settings.is_fleet else None
    if repo is None or repo.remote:
        return ""
    known = {host.name: host.seen for host in host_rows.every(service.store)}
    seen = [known.get(host, HostSeen(host)) for host in repo.checkouts]
    if not seen or not all(map(lacks_worker, seen)):
        return ""
    return f"{reason(seen[0])}; only it has {name}, so the job waits ({way_on(seen[0])})"


def stands_still(host: HostSeen, state: JobState, why: str) -> bool:
    """Return whether a job waits for its host: for a worker, or for disk space there. `why` is the job's reason; a job
    that no host can run waits for no single host.
    """
    is_queued = state is JobState.QUEUED
    if state.has_ended or (is_queued and why.startswith(NO_HOST)):
        return False
    return lacks_worker(host) or (is_queued and bool(host.held))


def way_on(host: HostSeen) -> str:
    """Return the command after which the jobs that wait for the host continue."""
    return way_back(host.name) if lacks_worker(host) else way_to_room(host)


def reason(host: HostSeen) -> str:
    """Return the reason why jobs wait for this host."""
    if host.held and not lacks_worker(host):
        return f"its host {host.name} starts nothing: {host.held}"
    if host.seen_at is None:
        return f"its host {host.name} has no worker: none was ever seen"
    if host.stopped_at is not None:
        return f"its host {host.name} has no worker: it was stopped at {clock(host.stopped_at)}"
    return f"its host {host.name} has no worker: not seen since {clock(host.seen_at)}"


@cache
def _client() -> "httpx.Client":
    """Return the client for all hosts. No proxy comes between them, and it follows no redirection."""
    import ssl

    import httpx

    limits = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
    return httpx.Client(timeout=limits, follow_redirects=False, trust_env=False, verify=ssl.create_default_context())
