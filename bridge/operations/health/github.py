"""Doctor's check of GitHub: identity, permissions, quota, and failed writes (ruling L8)."""

import os
from collections.abc import Iterator

from activities.github.account import Credentials, credentials
from activities.settings import ready
from activities.store.github import account, facts, reading
from bridge.machine import daemon_state
from bridge.operations.github.interest import served
from bridge.operations.health.findings import Finding, Level
from bridge.operations.health.github_permissions import Allowed, Seen, ask
from bridge.operations.service import Service
from workflows.model.errors import UsageError
from workflows.text.durations import clock

ABOUT = "github"
SCARCE = 0.1
"""The remaining quota below which doctor warns."""

STATUS, START = "service github status", "service daemon start"
RESTART = f"service daemon stop && {START}"


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
    yield from _asked(service, known) if known else _seen_last(service)
    yield from _rows(service)


def _finding(level: Level, says: str, fix: str = "") -> Finding:
    return Finding(ABOUT, level, says, fix)


def _process(service: Service) -> Finding:
    said = ready.read(service.home.github_ready)
    if said is None or not said.alive:
        fix = RESTART if daemon_state.status(service.home).running else START
        return _finding(Level.WARNING, "its process does not run: nothing is read or written there", fix)
    return _finding(Level.OK, f"process {said.pid}, speaks to {service.settings.github.api_url}")


def _asked(service: Service, known: Credentials) -> Iterator[Finding]:
    """Ask GitHub about the account now."""
    from activities.github.client import AwayError, DeclinedError, LimitedError, UnknownAccountError

    names = sorted({repo.github for repo in served(service)})
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
        yield from _told(service, seen)
        if not names:
            fix = "service repo add OWNER/NAME PATH --github OWNER/NAME"
            yield _finding(Level.WARNING, "no repository that it serves has a name on GitHub", fix)


def _renew(service: Service) -> str:
    """Return what renews a refused account; for a GitHub App, which has no token, the settings to correct."""
    settings = service.settings.github
    app = "put app_id, installation_id and private_key_file of [github] right"
    what = app if settings.app_id else f"put a valid token into {settings.token_env}"
    return f"{what}, then: {RESTART}"


def _told(service: Service, seen: Seen) -> Iterator[Finding]:
    kind = "a GitHub App" if seen.is_app else "a user"
    yield _finding(Level.OK, f"{seen.login}, {kind}")
    yield _quota(seen.quota.remaining, seen.quota.limit, seen.quota.reset)
    yield from map(_permissions, seen.repos)
    if service.settings.github.check and not seen.is_app:
        says = "only a GitHub App may make check runs: the verdict is given as the commit status service/gate"
        yield _finding(Level.OK, says)


def _permissions(allowed: Allowed) -> Finding:
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
    for each in reading.every(service.store):
        if each.error:
            yield _finding(Level.WRONG, f"{each.github}, as its process saw it: {each.error}", STATUS)


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
    if failed := facts.failed(service.store):
        last = failed[-1]
        where = f"{last.kind} on {last.where}"
        says = f"{len(failed)} could not be written, the last: {where}: {last.error}"
        yield _finding(Level.WARNING, says, f"{STATUS}, then: service github sync --retry")
