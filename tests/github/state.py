"""The Hub's memory: users, tokens, repositories and their contents."""

import base64
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from tests.github.marks import Reactions, Statuses
from tests.github.wire import Json

Role = Literal["admin", "maintain", "write", "triage", "read", "none"]
ROLES: tuple[Role, ...] = ("none", "read", "triage", "write", "maintain", "admin")


@dataclass
class User:
    id: int
    login: str
    type: str = "User"


@dataclass
class Token:
    login: str
    scopes: str = "repo"
    kind: Literal["classic", "fine", "installation"] = "classic"
    expires: datetime | None = None


@dataclass
class Comment:
    id: int
    number: int
    user: User
    body: str
    created: datetime
    updated: datetime


@dataclass
class Pull:
    head: str
    base: str
    sha: str
    base_sha: str
    draft: bool = False
    merged_at: datetime | None = None
    merge_sha: str | None = None


@dataclass
class Issue:
    id: int
    number: int
    user: User
    title: str
    body: str | None
    created: datetime
    updated: datetime
    state: str = "open"
    closed_at: datetime | None = None
    pull: Pull | None = None


@dataclass
class CheckRun:
    id: int
    sha: str
    data: Json
    annotations: list[Json] = field(default_factory=list)


@dataclass
class Repo:
    id: int
    owner: User
    name: str
    created: datetime
    default_branch: str = "main"
    private: bool = False
    roles: dict[str, Role] = field(default_factory=dict)
    """Roles by login in lower case; others may read public repositories."""
    issues: dict[int, Issue] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    """The commit of each branch."""
    commits: set[str] = field(default_factory=set)
    protected: dict[str, list[str]] = field(default_factory=dict)
    """The required checks of each protected branch."""
    checks: dict[int, CheckRun] = field(default_factory=dict)
    statuses: Statuses = field(default_factory=Statuses)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    def role_of(self, login: str) -> Role:
        return self.roles.get(login.lower(), "none" if self.private else "read")

    def sha_of(self, ref: str) -> str | None:
        """Return the commit of a sha, a branch, `heads/BRANCH` or `pull/N/head`."""
        if ref in self.commits:
            return ref
        parts = ref.removeprefix("refs/").split("/")
        if parts[0] == "pull" and parts[1].isdigit() and (issue := self.issues.get(int(parts[1]))) and issue.pull:
            return issue.pull.sha
        return self.branches.get(ref.removeprefix("refs/").removeprefix("heads/"))


@dataclass
class App:
    id: int
    slug: str
    owner: User
    created: datetime
    installations: dict[int, User] = field(default_factory=dict)
    """The account of each."""


def _ids() -> Iterator[int]:
    """Count ids as big as GitHub's, and not consecutive."""
    return itertools.count(3_141_592_653, 1_009)


@dataclass
class World:
    """Everything on the Hub, with its clock."""

    users: dict[str, User] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    repos: dict[str, Repo] = field(default_factory=dict)
    """Repositories by `owner/name` in lower case."""
    reactions: Reactions = field(default_factory=Reactions)
    apps: dict[int, App] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=_ids)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def now(self) -> datetime:
        """Return the time in whole seconds, as on GitHub."""
        return self.clock().replace(microsecond=0)

    def after(self, before: datetime) -> datetime:
        """Return the time of a change: later than `before`, however soon it comes."""
        return max(self.now(), before + timedelta(seconds=1))


def node_id(kind: str, number: int) -> str:
    return f"{kind}_kwDO{base64.urlsafe_b64encode(number.to_bytes(8, 'big')).decode().rstrip('=')}"


def stamp(time: datetime | None) -> str | None:
    """Format a date as GitHub does."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if time else None
