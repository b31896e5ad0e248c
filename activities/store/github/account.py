"""The service's GitHub account: its quota, the time until which it is blocked, and counts of its requests (L8)."""

import time
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine, delete, select, update

from activities.store import schema
from activities.store.queries import insert_new, one, rows, write
from activities.store.schema.github import REFUSED as REFUSED

table, requests = schema.github_account, schema.github_requests
NAME = "github"
KEPT_HOURS = 24 * 30


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
    """Begin of the current failure: GitHub away, or asking for no requests."""
    failures: int = 0
    problem: str = ""
    wrote_at: float = 0.0
    checks_refused: bool = False
    """True if it may not make check runs: the verdict is a commit status then."""

    @property
    def refused(self) -> bool:
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
    """Unblock requests of an account that GitHub refused, because a person may have repaired it. Rate limits stay."""
    if read(engine).refused:
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
