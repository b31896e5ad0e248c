"""Requests to GitHub: the account, its quota and counted requests (ruling L8), the repositories whose comments are
read, received webhook deliveries, and cached answers (ruling L7).
"""

import time
from collections.abc import Iterator, MutableMapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine, delete, func, select, update

from activities.store import schema
from activities.store.queries import insert_new, one, rows, scalar, scalars, upsert, write
from activities.store.schema.github import REFUSED as REFUSED

table, requests = schema.github_account, schema.github_requests
repos, pages, deliveries = schema.github_repos, schema.github_pages, schema.github_deliveries
NAME = "github"
KEPT_HOURS = 24 * 30
LONGEST_URL = 600
KEPT_SECONDS = 30 * 86_400.0
"""Retention of rows that only save quota."""


@dataclass(frozen=True)
class Account:
    """The account as last seen."""

    login: str = ""
    kind: str = ""
    """`user` or `app`."""
    seen_at: float = 0.0
    quota: int | None = None
    remaining: int | None = None
    reset_at: float | None = None
    blocked_until: float | None = None
    """No request before this time, as GitHub asked."""
    failing_since: float | None = None
    """Begin of the current failure: GitHub is unreachable, or asks for no requests."""
    failures: int = 0
    problem: str = ""
    wrote_at: float = 0.0
    checks_refused: bool = False
    """True if the account may not make check runs: then the verdict is published as a commit status."""

    @property
    def is_refused(self) -> bool:
        """Return whether GitHub refuses the account."""
        return self.problem.startswith(REFUSED)


@dataclass(frozen=True)
class Hour:
    """Requests of one hour for one repository, or for the account itself."""

    hour: int
    github: str
    counted: int
    free: int
    written: int


@dataclass(frozen=True)
class Polling:
    """The progress of reading a repository's comments."""

    github: str
    since: float
    """Comments that changed before this time are known."""
    polled_at: float = 0.0
    next_at: float = 0.0
    """Time of the next poll, unless it is wanted sooner."""
    wanted_at: float = 0.0
    """Time at which a webhook or a person reported news."""
    default_branch: str = ""
    error: str = ""

    def due(self, now: float) -> bool:
        return self.next_at <= now or self.wanted_at > self.polled_at


def read(engine: Engine) -> Account:
    row = one(engine, select(table).where(table.c.name == NAME))
    if row is None:
        return Account()
    known = {key: value for key, value in row._mapping.items() if key != "name"}
    return Account(**known)


def note(engine: Engine, **values: Any) -> None:
    """Update these columns of the account's row."""
    with engine.begin() as connection:
        insert_new(connection, table, {"name": NAME, **asdict(Account())})
        write(connection, update(table).where(table.c.name == NAME).values(**values))


def ask_anew(engine: Engine) -> None:
    """Allow requests again with an account that GitHub had refused: a person may have repaired its access. Rate limits
    still apply.
    """
    if read(engine).is_refused:
        note(engine, blocked_until=None)


def count(engine: Engine, github: str, *, free: bool, wrote: bool) -> None:
    """Count a request, and drop counts older than `KEPT_HOURS`."""
    hour = int(time.time() // 3600)
    mine = (requests.c.hour == hour) & (requests.c.github == github)
    name = "free" if free else "counted"
    change: dict[str, Any] = {name: requests.c[name] + 1}
    change |= {"written": requests.c.written + 1} if wrote else {}
    with engine.begin() as connection:
        insert_new(connection, requests, {"hour": hour, "github": github, "counted": 0, "free": 0, "written": 0})
        write(connection, update(requests).where(mine).values(**change))
        write(connection, delete(requests).where(requests.c.hour < hour - KEPT_HOURS))


def hours(engine: Engine, since: float) -> list[Hour]:
    """Return the requests since then, by hour and repository."""
    query = select(requests).where(requests.c.hour >= int(since // 3600)).order_by(requests.c.hour, requests.c.github)
    return [Hour(**row._mapping) for row in rows(engine, query)]


def readings(engine: Engine) -> list[Polling]:
    return [Polling(**row._mapping) for row in rows(engine, select(repos).order_by(repos.c.github))]


def begin_reading(engine: Engine, github: str, since: float) -> None:
    """Start to read this repository's comments; no-op if they are being read already."""
    insert_new(engine, repos, asdict(Polling(github, since)))


def note_reading(engine: Engine, github: str, **values: Any) -> None:
    """Update these columns of a repository's row."""
    write(engine, update(repos).where(repos.c.github == github).values(**values))


def want_reading(engine: Engine, github: str = "") -> int:
    """Schedule the next poll of a repository, or of all repositories, for now. Return how many."""
    change = update(repos).values(wanted_at=time.time())
    return write(engine, change.where(repos.c.github == github) if github else change)


def is_new_delivery(engine: Engine, delivery_id: str, event: str) -> bool:
    """Record a webhook delivery; return False if it is recorded already."""
    return insert_new(engine, deliveries, {"delivery_id": delivery_id, "event": event, "at": time.time()}) == 1


def last_delivery(engine: Engine) -> tuple[str, float] | None:
    """Return the event and time of the webhook's latest delivery."""
    query = select(deliveries.c.event, deliveries.c.at).order_by(deliveries.c.at.desc()).limit(1)
    row = one(engine, query)
    return (row.event, row.at) if row else None


def tidy(engine: Engine) -> None:
    """Delete old rows of caches and of webhook deliveries."""
    old = time.time() - KEPT_SECONDS
    with engine.begin() as connection:
        write(connection, delete(pages).where(pages.c.at < old))
        write(connection, delete(deliveries).where(deliveries.c.at < old))


Page = tuple[str | None, str | None, Any, str | None]


class Pages(MutableMapping[str, Page]):
    """Cache of GitHub's answers by URL: ETag, date, data, next page."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getitem__(self, url: str) -> Page:
        row = one(self._engine, select(pages).where(pages.c.url == url))
        if row is None:
            raise KeyError(url)
        return row.etag, row.last_modified, row.data, row.more

    def __setitem__(self, url: str, page: Page) -> None:
        etag, last_modified, data, more = page
        row = {"url": url, "etag": etag, "last_modified": last_modified, "data": data, "more": more, "at": time.time()}
        if len(url) <= LONGEST_URL:
            upsert(self._engine, pages, row)

    def __delitem__(self, url: str) -> None:
        write(self._engine, delete(pages).where(pages.c.url == url))

    def __iter__(self) -> Iterator[str]:
        yield from scalars(self._engine, select(pages.c.url))

    def __len__(self) -> int:
        return scalar(self._engine, select(func.count()).select_from(pages)) or 0
