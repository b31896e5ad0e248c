"""The account's permissions, as GitHub reports them, and those that the enabled features lack (ruling L8)."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from activities.github import api
from activities.github.account import Credentials
from activities.github.client import AwayError, Client, DeclinedError
from activities.github.models import Quota
from activities.settings.model import Github
from bridge.operations.service import Service

SECONDS = 15.0
"""The seconds for all requests together: people wait for the answer."""

MOST = 20
"""The number of repositories that are checked."""

LEVELS = ("read", "write", "admin")


@dataclass(frozen=True)
class Allowed:
    """The account's permissions in one repository."""

    github: str
    may: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    """Sentences: the feature, and the permission that it lacks."""
    problem: str = ""
    """Why the permissions are unknown."""


@dataclass(frozen=True)
class Seen:
    """The account as GitHub sees it."""

    login: str
    is_app: bool
    quota: Quota
    repos: tuple[Allowed, ...]


def ask(service: Service, known: Credentials, repos: Sequence[str]) -> Seen:
    """Ask GitHub for the account's permissions; raise the client's errors."""

    async def look() -> Seen:
        settings = service.settings.github
        try:
            async with asyncio.timeout(SECONDS), Client(service.store, known, settings.api_url) as client:
                who, quota = await api.whoami(client), await api.quota(client)
                allowed = [await _allowed(client, settings, each) for each in repos[:MOST]]
                return Seen(who.login, client.is_app, quota, tuple(allowed))
        except TimeoutError:
            raise AwayError(f"GitHub has not answered everything within {SECONDS:g} s") from None

    return asyncio.run(look())


async def _allowed(client: Client, settings: Github, github: str) -> Allowed:
    try:
        if client.is_app:
            granted = (await client.installation(github)).get("permissions") or {}
            return Allowed(github, _listed(granted), tuple(_app_lacks(settings, granted)))
        found = (await api.repository(client, github)).permissions
        may = tuple(name for name in ("pull", "triage", "push", "maintain", "admin") if found.get(name))
        return Allowed(github, may, tuple(_user_lacks(settings, may)))
    except DeclinedError as error:
        if error.status == 404:
            return Allowed(github, problem="the account cannot see it")
        return Allowed(github, problem=str(error))


def _listed(granted: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}: {level}" for name, level in sorted(granted.items()))


def _user_lacks(settings: Github, may: Sequence[str]) -> Iterator[str]:
    if "push" in may:
        return
    if settings.comments != "never":
        yield "comments need write access (push)"
    if settings.commands:
        yield "to know what an author may order it needs write access (push)"
    if settings.check:
        yield "the verdict as a commit status needs write access (push)"
    if settings.publish != "never":
        yield "to publish needs write access (push)"


def _app_lacks(settings: Github, granted: Mapping[str, str]) -> Iterator[str]:
    needs = {
        "comments and commands need": (settings.comments != "never" or settings.commands, ("issues", "pull_requests")),
        "the check needs": (settings.check, ("checks",)),
        "to publish needs": (settings.publish != "never", ("contents", "pull_requests")),
    }
    for what, (wanted, names) in needs.items():
        missing = [name for name in names if LEVELS.index(granted.get(name, "read")) < LEVELS.index("write")]
        if wanted and missing:
            yield f"{what} {' and '.join(f'{name}: write' for name in missing)}"
