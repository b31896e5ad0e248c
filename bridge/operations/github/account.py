"""The status of the GitHub account (requests, pending and failed writes), its problems that need a person, and
synchronizing on demand.
"""

import time
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass

from activities.settings import ready
from activities.store import job_rows
from activities.store.github import account, facts, threads
from activities.store.github.account import Account, Hour, Polling
from activities.store.github.facts import FactRow
from activities.store.github.threads import CommentRow, Thread
from activities.store.registry import repo_rows
from activities.store.waiting_rows import ACCOUNT
from bridge.machine.step_messages import Step, unheard
from bridge.operations.github.polling import of_interest
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError, UnreachableError
from workflows.text.durations import clock

LATEST = 10
"""The number of commands that a status lists."""

DAY = 86_400.0
WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.2
STATUS = "service github status"


@dataclass(frozen=True)
class RequestCounts:
    """Counts of requests to GitHub: reads that cost quota, free reads, and writes."""

    counted: int = 0
    free: int = 0
    written: int = 0


@dataclass(frozen=True)
class Requests:
    """Numbers of requests to GitHub, since the full hour and in the last day."""

    hour: RequestCounts
    day: RequestCounts


@dataclass(frozen=True, kw_only=True)
class RepoStatus(Polling):
    """A repository that the service reads, or has read."""

    requests: Requests
    of_interest: bool
    """True while the repository is polled, because comments in it can contain answers or commands."""


@dataclass(frozen=True, kw_only=True)
class OpenThread(Thread):
    """An open tree, and the thread where it is discussed."""

    title: str


@dataclass(frozen=True)
class AccountStatus:
    """The content of `service github status`."""

    account: Account
    process: int | None
    """The poller's process id; None when it is not running."""
    api_url: str
    requests: Requests
    """Requests for all repositories and for the account itself."""
    repos: tuple[RepoStatus, ...]
    threads: tuple[OpenThread, ...]
    waiting: tuple[FactRow, ...]
    failed: tuple[FactRow, ...]
    commands: tuple[CommentRow, ...]
    webhook: bool
    """True if a webhook secret is set up."""
    delivery: tuple[str, float] | None
    """The event of the last delivery, and its time."""


def require(service: Service) -> None:
    """Raise if no account is set up, with the commands that set one up."""
    if not service.settings.github.is_configured:
        how = f"set [github].token_env in {service.home.config}, export that variable"
        raise RefusedError(
            "no GitHub account is set up: nothing is read or written there",
            f"{how}, then: service daemon stop && service daemon start",
        )


def status(service: Service) -> AccountStatus:
    """Return the status of the account."""
    require(service)
    store, now = service.store, time.time()
    hours = account.hours(store, now - DAY)
    interest = of_interest(service)
    bound = threads.open_ones(store)
    tasks = job_rows.tasks_of(store, {each.root_job_id for each in bound})
    titles = {root: task.title for root, task in tasks.items()}
    return AccountStatus(
        account=account.read(store),
        process=process(service),
        api_url=service.settings.github.api_url,
        requests=_requests(hours, now),
        repos=tuple(
            RepoStatus(
                **asdict(reading),
                requests=_requests([hour for hour in hours if hour.github == reading.github], now),
                of_interest=reading.github in interest,
            )
            for reading in account.readings(store)
        ),
        threads=tuple(OpenThread(**asdict(each), title=titles.get(each.root_job_id, "")) for each in bound),
        waiting=tuple(facts.waiting(store)),
        failed=tuple(facts.failures(store)),
        commands=tuple(threads.latest_comments(store, LATEST)),
        webhook=bool(service.settings.github.webhook_secret_env),
        delivery=account.last_delivery(store),
    )


def process(service: Service) -> int | None:
    """Return the id of the process that polls GitHub; None when it is not running."""
    poller = ready.read(service.home.github_ready)
    return poller.pid if poller and poller.alive else None


@dataclass(frozen=True)
class Trouble:
    """A problem of one pull request or issue, or of the account."""

    about: str
    """OWNER/NAME#NUMBER, OWNER/NAME alone where nothing has a number yet, or `account`."""
    says: str
    next: tuple[str, ...]
    root_job_id: str = ""
    facts: tuple[str, ...] = ()


def troubles(service: Service, keys: Collection[str]) -> dict[str, Trouble]:
    """Return the problems with these keys: `OWNER/NAME#NUMBER`, or `account`."""
    failed: dict[str, list[FactRow]] = {}
    for fact in facts.failures(service.store):
        failed.setdefault(f"{fact.github}#{fact.number}", []).append(fact)
    by_key = {key: _unwritten(rows) for key, rows in failed.items() if key in keys}
    return by_key | ({ACCOUNT: _outage(service)} if ACCOUNT in keys else {})


def _unwritten(rows: list[FactRow]) -> Trouble:
    whys = list(dict.fromkeys(each.error for each in rows))
    kinds = ", ".join(sorted({each.kind for each in rows}))
    more = f" (and {len(whys) - 1} other reasons)" if len(whys) > 1 else ""
    says = f"{kinds} could not be written on {rows[0].where}: {whys[0]}{more}"
    github = rows[0].github
    ways = (STATUS, f"service github sync {github} --retry", f"service github sync {github} --drop")
    return Trouble(rows[0].where, says, ways, rows[0].root_job_id, tuple(each.fact_id for each in rows))


def _outage(service: Service) -> Trouble:
    known = account.read(service.store)
    since = clock(known.failing_since) if known.failing_since else "a while"
    ways = ("service doctor", "service github sync") if known.is_refused else (STATUS, "service doctor")
    return Trouble(ACCOUNT, f"{known.problem or 'GitHub gives no answer'}; since {since}", ways)


@dataclass(frozen=True)
class Synced:
    """The result of a synchronization."""

    looked: tuple[Polling, ...]
    """The repositories that were polled."""
    late: tuple[Polling, ...]
    """The repositories that were not polled in time."""
    tried: int
    """The number of failed writes that are retried or, with `drop`, given up."""
    problem: str
    """The reason why no request is sent to GitHub now."""


def sync(
    service: Service,
    name: str | None,
    *,
    retry: bool,
    drop: bool,
    wait: float = WAIT_SECONDS,
    step: Step = unheard,
) -> Synced:
    """Schedule polls of repositories for now; wait until they have happened, or at most `wait` seconds."""
    require(service)
    github = _github_name(service, name) if name else ""
    runs = process(service) is not None
    tried = _again(service, github, drop=drop) if drop or (retry and runs) else 0
    if not runs and not drop:
        raise UnreachableError("the process that speaks to GitHub does not run", "service daemon status")
    interest = of_interest(service) if runs else set()
    wanted = [
        reading
        for reading in account.readings(service.store)
        if reading.github in interest and github in {"", reading.github}
    ]
    if github and not wanted and not tried:
        raise RefusedError(
            f"nothing of {github} is read now: no task of it waits or runs for a pull request or issue",
            STATUS,
        )
    account.ask_anew(service.store)
    for reading in wanted:
        account.want_reading(service.store, reading.github)
    names, asked = {each.github for each in wanted}, time.time()
    while True:
        now = [each for each in account.readings(service.store) if each.github in names]
        late = tuple(each for each in now if each.wanted_at > each.polled_at)
        known = account.read(service.store)
        blocked = known.problem if (known.blocked_until or 0.0) > time.time() else ""
        if not late or blocked or time.time() - asked > wait:
            return Synced(tuple(each for each in now if each not in late), late, tried, blocked)
        step(f"waiting until {', '.join(each.github for each in late)} was read, {wait:.0f} s at most")
        time.sleep(_LOOK_SECONDS)


def _github_name(service: Service, name: str) -> str:
    """Return the GitHub name of a repository, given that name or the name it is registered under."""
    known = {each.github for each in account.readings(service.store)}
    registered = {repo.name: repo.github for repo in repo_rows.every(service.store) if repo.github}
    if name in known | {*registered.values()}:
        return name
    if name in registered:
        return registered[name]
    raise NotFoundError(f"no repository {name} is known on GitHub", "service repo list")


def _again(service: Service, github: str, *, drop: bool) -> int:
    """Retry failed writes, or give them up with `drop`; return their number."""
    failed = facts.failures(service.store, github)
    for fact in failed:
        facts.drop(service.store, fact.fact_id) if drop else facts.again(service.store, fact.fact_id)
    return len(failed)


def _requests(hours: list[Hour], now: float) -> Requests:
    return Requests(_sum(each for each in hours if each.hour == int(now // 3600)), _sum(hours))


def _sum(hours: Iterable[Hour]) -> RequestCounts:
    counts = list(hours)
    return RequestCounts(
        sum(each.counted for each in counts), sum(each.free for each in counts), sum(each.written for each in counts)
    )
