"""Doctor's check of GitHub: identity, granted and missing permissions, quota, and failed writes (ruling L8)."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from activities.github import api
from activities.github.client import AwayError, Client, DeclinedError, LimitedError, UnknownAccountError
from activities.github.credentials import Credentials, credentials
from activities.github.models import RateLimit
from activities.settings import ready
from activities.settings.model import Github
from activities.store.github import account, facts
from bridge.machine import daemon_state
from bridge.operations.github.polling import served_repos
from bridge.operations.health.findings import Finding, Level
from bridge.operations.service import Service
from workflows.model.errors import UsageError
from workflows.text.durations import clock

ABOUT = "github"
SCARCE = 0.1
"""The remaining quota below which doctor warns."""

STATUS, START = "service github status", "service daemon start"
RESTART = f"service daemon stop && {START}"

SECONDS = 15.0
"""The seconds for all requests together: people wait for the answer."""

MOST = 20
"""The number of repositories that are checked."""

LEVELS = ("read", "write", "admin")


@dataclass(frozen=True)
class RepoPermissions:
    """The account's permissions in one repository."""

    github: str
    may: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    """A sentence for each enabled feature that lacks a permission."""
    problem: str = ""
    """Why the permissions are unknown."""


@dataclass(frozen=True)
class AccountSeen:
    """The account as GitHub sees it."""

    login: str
    is_app: bool
    quota: RateLimit
    repos: tuple[RepoPermissions, ...]


def findings(service: Service) -> Iterator[Finding]:
    """Check the account. Call this only if one is configured."""
    yield _process(service)
    if not service.settings.store.url and not service.home.store.exists():
        return
    try:
        known = credentials(service.settings.github, os.environ)
    except UsageError as error:
        if service.settings.github.app_id:
            yield _finding(Level.WRONG, error.message, error.hint)
        elif service.settings.github.token_env not in os.environ:
            yield _finding(
                Level.OK, f"{service.settings.github.token_env} is not set here, so GitHub itself is not asked"
            )
        else:
            yield _finding(Level.WARNING, error.message, error.hint)
        known = None
    yield from _ask_now(service, known) if known else _seen_last(service)
    yield from _rows(service)


def _finding(level: Level, says: str, fix: str = "") -> Finding:
    return Finding(ABOUT, level, says, fix)


def _process(service: Service) -> Finding:
    poller = ready.read(service.home.github_ready)
    if poller is None or not poller.alive:
        fix = RESTART if daemon_state.status(service.home).running else START
        return _finding(Level.WARNING, "its process does not run: nothing is read or written there", fix)
    return _finding(Level.OK, f"process {poller.pid}, speaks to {service.settings.github.api_url}")


def _ask_now(service: Service, known: Credentials) -> Iterator[Finding]:
    """Ask GitHub about the account now."""
    names = sorted({repo.github for repo in served_repos(service)})
    try:
        seen = ask(service, known, names)
    except UnknownAccountError as error:
        yield _finding(Level.WRONG, str(error), _renew(service))
    except DeclinedError as error:
        yield _finding(Level.WRONG, f"the account is refused: {error}", _renew(service))
    except LimitedError as error:
        yield _finding(Level.WARNING, f"{error}, until {clock(error.until)}", STATUS)
        yield from _seen_last(service)
    except AwayError as error:
        yield _finding(Level.WARNING, str(error), "check [github].api_url and the network")
        yield from _seen_last(service)
    else:
        yield from _account(service, seen)
        if not names:
            fix = "service repo add OWNER/NAME PATH --github OWNER/NAME"
            yield _finding(Level.WARNING, "no repository that it serves has a name on GitHub", fix)


def _renew(service: Service) -> str:
    """Return how to renew the token of a refused account; for a GitHub App, which has no token, the settings to
    correct.
    """
    settings = service.settings.github
    app = "put app_id, installation_id and private_key_file of [github] right"
    what = app if settings.app_id else f"put a valid token into {settings.token_env}"
    return f"{what}, then: {RESTART}"


def _account(service: Service, seen: AccountSeen) -> Iterator[Finding]:
    kind = "a GitHub App" if seen.is_app else "a user"
    yield _finding(Level.OK, f"{seen.login}, {kind}")
    yield _quota(seen.quota.remaining, seen.quota.limit, seen.quota.reset)
    yield from map(_permissions, seen.repos)
    if service.settings.github.check and not seen.is_app:
        says = "only a GitHub App may make check runs: the verdict is given as the commit status service/gate"
        yield _finding(Level.OK, says)


def _permissions(allowed: RepoPermissions) -> Finding:
    fix = f"give the account access to {allowed.github} there"
    if allowed.problem:
        return _finding(Level.WRONG, f"{allowed.github}: {allowed.problem}", fix)
    may = ", ".join(allowed.may) or "nothing"
    if allowed.lacks:
        return _finding(Level.WRONG, "\n".join((f"{allowed.github}: may {may}", *allowed.lacks)), fix)
    return _finding(Level.OK, f"{allowed.github}: may {may}")


def _quota(left: int, quota: int, until: float) -> Finding:
    level = Level.WARNING if left < quota * SCARCE else Level.OK
    fix = f"{STATUS}  (says what was asked)" if level is Level.WARNING else ""
    return _finding(level, f"{left} of {quota} requests left until {clock(until)}", fix)


def _seen_last(service: Service) -> Iterator[Finding]:
    """Report the account's state as the GitHub process last recorded it: only that process has the token."""
    known = account.read(service.store)
    if not known.login:
        yield _finding(Level.WARNING, "who the account is was never seen", STATUS)
        return
    kind = "a GitHub App" if known.kind == "app" else "a user"
    yield _finding(Level.OK, f"{known.login}, {kind}, as its process saw it at {clock(known.seen_at)}")
    if known.remaining is not None and known.reset_at:
        yield _quota(known.remaining, known.quota or 0, known.reset_at)
    for reading in account.readings(service.store):
        if reading.error:
            yield _finding(Level.WRONG, f"{reading.github}, as its process saw it: {reading.error}", STATUS)


def _rows(service: Service) -> Iterator[Finding]:
    """Report why the account is blocked, and failed writes, from the store's rows."""
    known = account.read(service.store)
    if known.problem:
        since = f", since {clock(known.failing_since)}" if known.failing_since else ""
        until = f"; asked again at {clock(known.blocked_until)}" if known.blocked_until else ""
        yield _finding(Level.WARNING, f"{known.problem}{since}{until}", STATUS)
    if known.checks_refused and service.settings.github.check and service.settings.github.app_id:
        says = "it may not make check runs: the verdict is given as the commit status service/gate"
        yield _finding(Level.WARNING, says, "let the GitHub App write checks, then: service github sync")
    if failed := facts.failures(service.store):
        last = failed[-1]
        where = f"{last.kind} on {last.where}"
        says = f"{len(failed)} could not be written, the last: {where}: {last.error}"
        yield _finding(Level.WARNING, says, f"{STATUS}, then: service github sync --retry")


def ask(service: Service, known: Credentials, repos: Sequence[str]) -> AccountSeen:
    """Ask GitHub for the account's permissions; raise the client's errors."""

    async def look() -> AccountSeen:
        settings = service.settings.github
        try:
            async with asyncio.timeout(SECONDS), Client(service.store, known, settings.api_url) as client:
                who, quota = await api.whoami(client), await api.quota(client)
                allowed = [await _permissions_in(client, settings, each) for each in repos[:MOST]]
                return AccountSeen(who.login, client.is_app, quota, tuple(allowed))
        except TimeoutError:
            raise AwayError(f"GitHub has not answered everything within {SECONDS:g} s") from None

    return asyncio.run(look())


async def _permissions_in(client: Client, settings: Github, github: str) -> RepoPermissions:
    try:
        if client.is_app:
            granted = (await client.installation(github)).get("permissions") or {}
            levels = tuple(f"{name}: {level}" for name, level in sorted(granted.items()))
            return RepoPermissions(github, levels, tuple(_app_lacks(settings, granted)))
        permissions = (await api.repository(client, github)).permissions
        may = tuple(name for name in ("pull", "triage", "push", "maintain", "admin") if permissions.get(name))
        return RepoPermissions(github, may, tuple(_user_lacks(settings, may)))
    except DeclinedError as error:
        if error.status == 404:
            return RepoPermissions(github, problem="the account cannot see it")
        return RepoPermissions(github, problem=str(error))


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
