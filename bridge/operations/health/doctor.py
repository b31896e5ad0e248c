"""`service doctor`: checks everything that the service depends on, each with the command that repairs it."""

import asyncio
import contextlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from activities.git.command import OLDEST_GIT
from activities.sealing import seal_key
from activities.settings import secure_home
from activities.settings.load import SettingsError
from bridge.machine import daemon_state
from bridge.machine.locks import holder
from bridge.machine.step_messages import Step, unheard
from bridge.machine.writable import require_writable
from bridge.operations.health.boxes import box_findings, limit_findings
from bridge.operations.health.findings import Finding, Level
from bridge.operations.health.runtimes import any_works, check_runtimes
from bridge.operations.service import Service
from bridge.operations.settings import in_words, stale_processes
from workflows.model.errors import ServiceError, UnreachableError
from workflows.policy.stalls import WAYS
from workflows.text.plurals import quantity

PYTHON = (3, 11, 5)

SCARCE_BYTES, FULL_BYTES = 5 * 1024**3, 512 * 1024**2
LEFT_OVER_SECONDS = 86_400.0
OPENED_SECONDS = 7 * 86_400.0
FROZEN_SECONDS = 86_400.0
"""Seconds for which a member that froze is reported."""

Check = Callable[[Service], Iterator[Finding]]


def examine(service: Service) -> list[Finding]:
    """Run every check."""
    return list(look(service))


def foundation(service: Service) -> list[Finding]:
    """Run only the checks that a start depends on: settings, store, admission to the fleet, Temporal."""
    return list(_run((settings, store, fleet, temporal), service, unheard))


def look(service: Service, step: Step = unheard) -> Iterator[Finding]:
    """Run every check, and yield the findings in their order, each as soon as it is known."""
    return _run(CHECKS, service, step)


def lacking(service: Service) -> tuple[str, tuple[str, ...]]:
    """Return lines on what would make a start fail, and the commands that repair it; empty if the service can start."""
    wrong = [found for found in foundation(service) if found.level is Level.WRONG]
    fixes = tuple(dict.fromkeys(found.fix for found in wrong if found.fix))
    return "\n".join(f"{found.about}: {found.says}" for found in wrong), fixes


def _run(checks: Sequence[Check], service: Service, step: Step) -> Iterator[Finding]:
    """Run the checks of `GROUND` in turn, and all others in threads.

    A failed check doesn't stop the others, unless home or store is missing: then checks that read it are skipped.
    """
    service = replace(service, migrates=False)
    threads = ThreadPoolExecutor(len(checks))
    begun = dict[Check, Future[list[Finding]]]()
    try:
        for number, check in enumerate(checks, 1):
            step(f"looking at {check.__name__}, {number} of {len(checks)}")
            if check not in GROUND and not begun:
                rest = checks[number - 1 :]
                for other in sorted(rest, key=lambda other: other not in WAITING):
                    if other not in WAITING:
                        _import_shared()
                    begun[other] = threads.submit(_look_beside, other, service, begun)
            findings = begun[check].result() if begun else list(_carefully(check, service))
            yield from findings
            if check is home and not healthy(findings):
                return
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _import_shared() -> None:
    """Import the packages that several checks load: being circular, they fail when two threads import them at once."""
    for name in ("activities.store.database", "activities.git.repository_limits", "bridge.operations.temporal"):
        importlib.import_module(name)


def _look_beside(check: Check, service: Service, begun: Mapping[Check, Future[list[Finding]]]) -> list[Finding]:
    """Return the findings of a check; none if it reads the store, which begins before it, and that is wrong."""
    if check in READ_THE_STORE and store in begun and not healthy(begun[store].result()):
        return []
    return list(_carefully(check, service))


def healthy(findings: list[Finding]) -> bool:
    """Return whether nothing is wrong; warnings are allowed."""
    return all(finding.level is not Level.WRONG for finding in findings)


def python(_: Service) -> Iterator[Finding]:
    running = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= PYTHON
    fix = "" if good else f"install Python {'.'.join(map(str, PYTHON))} or newer"
    yield Finding("python", Level.OK if good else Level.WRONG, f"{running}, {sys.executable}", fix)


_VERSION = re.compile(r"(?<!\d)(\d{1,9})\.(\d{1,9})")


def git(_: Service) -> Iterator[Finding]:
    path, fix = shutil.which("git"), f"install git {OLDEST_GIT[0]}.{OLDEST_GIT[1]} or newer"
    if path is None:
        yield Finding("git", Level.WRONG, "there is no git on the PATH", fix)
        return
    printed = subprocess.run(
        [path, "--version"], capture_output=True, text=True, timeout=20, check=False
    ).stdout.strip()
    version = _VERSION.search(printed)
    good = version is not None and (int(version[1]), int(version[2])) >= OLDEST_GIT
    yield Finding("git", Level.OK if good else Level.WRONG, f"{printed}, {path}", "" if good else fix)


def libgit2(_: Service) -> Iterator[Finding]:
    from activities.git import repository_limits

    yield Finding("libgit2", Level.OK, repository_limits.version())


def repositories(service: Service) -> Iterator[Finding]:
    """Report each problem with a repository of this host; nothing without a store, which another check reports."""
    if not service.settings.store.url and not service.home.store.exists():
        return
    from activities.git.repository_limits import limits
    from activities.host import checkouts
    from activities.store.registry import repo_rows

    try:
        here, known = checkouts.every_here(service), repo_rows.every(service.store)
    except Exception:
        return
    for repo in here:
        for limit in limits(Path(repo.path)):
            level = Level.WRONG if limit.unusable else Level.WARNING
            yield Finding(f"repository {repo.name}", level, limit.says, limit.fix)
    for repo in known:
        try:
            checkouts.reach(service, repo)
        except ServiceError as fault:
            yield Finding(f"repository {repo.name}", Level.WRONG, fault.message, fault.hint)


def home(service: Service) -> Iterator[Finding]:
    root = service.home.root
    service.home.trust()
    if not root.exists():
        yield _try_to_make(root)
        return
    require_writable(service.home)
    opened = secure_home.every(root, time.time() - OPENED_SECONDS)
    for opening in opened:
        at = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(opening.at))
        yield Finding("home", Level.WARNING, f"{at}: {opening.said}", f"less '{service.home.open_report}'")
    if not opened:
        yield Finding("home", Level.OK, f"{root}, private")


def _try_to_make(root: Path) -> Finding:
    """Try whether a folder can be made where the home would be."""
    place = next(parent for parent in root.parents if parent.exists())
    try:
        os.rmdir(tempfile.mkdtemp(dir=place))
    except OSError as error:
        why = "it is a file" if place.is_file() else error.strerror
        says = f"{root} cannot be the service home: nothing can be made in {place}: {why}"
        return Finding("home", Level.WRONG, says, "export SERVICE_HOME=/some/folder")
    return Finding("home", Level.OK, f"{root} is made at first use")


def disk(service: Service) -> Iterator[Finding]:
    place = next(path for path in (service.home.root, *service.home.root.parents) if path.exists())
    free, floor = shutil.disk_usage(place).free, _floor(service)
    level = Level.WRONG if free < floor else Level.WARNING if free < SCARCE_BYTES else Level.OK
    fix = "" if level is Level.OK else f"service gc; what is kept how long: [worker].keep_runs in {service.home.config}"
    held = f"; below {floor / 1024**3:g} GiB nothing starts" if free < floor else ""
    yield Finding("disk", level, f"{free / 1024**3:.1f} GiB free for {service.home.root}{held}", fix)


def _floor(service: Service) -> float:
    """Return the free bytes below which no job starts; without such a setting, the size of a full disk."""
    with contextlib.suppress(SettingsError):
        return service.settings.worker.free_disk * 1024**3 or FULL_BYTES
    return FULL_BYTES


def settings(service: Service) -> Iterator[Finding]:
    _ = service.settings
    config = service.home.config
    yield Finding("settings", Level.OK, f"{config} is good" if config.exists() else "the defaults are in force")


def store(service: Service) -> Iterator[Finding]:
    """Check the store, without migrating one of an older release."""
    from activities.store.database import HEAD, StoreOlderError, connect, place_of

    url = service.settings.store.url
    if not url and not service.home.store.exists():
        yield Finding("store", Level.OK, "made at first use")
        return
    where = place_of(service.home, url)
    try:
        _ = service.store
        yield Finding("store", Level.OK, f"{where}, schema {HEAD}")
    except StoreOlderError as older:
        yield Finding("store", Level.OK, f"{where}: {older.message}")
    with connect(service.home, url) as connection:
        if connection.dialect.name == "postgresql":
            from bridge.operations.health.releases import of_postgresql

            yield from of_postgresql(connection, service.settings.store.pool)


def fleet(service: Service) -> Iterator[Finding]:
    """Check that this host may work for its store, with its key, namespace and name (ruling Q1)."""
    if not service.settings.store.url and not service.home.store.exists():
        return
    from activities.host import admission
    from activities.store.registry import host_rows
    from bridge.operations.temporal import candidate
    from workflows.policy.host_availability import lacks_worker

    admission.check(candidate(service))
    if service.settings.store.url:
        every = host_rows.every(service.store)
        working = [host.name for host in every if not lacks_worker(host.seen)]
        says = f"{len(working)} of {quantity(len(every), 'host')} at work"
        yield Finding("fleet", Level.OK, f"{says}: {', '.join(working)}" if working else says)


def temporal(service: Service) -> Iterator[Finding]:
    from activities import cluster
    from activities.temporal import connect_to_look, external_config

    runs, own = holder(service.home.daemon_lock) is not None, external_config(service.settings) is None
    if not runs and own:  # the default port may be another's
        yield Finding("temporal", Level.WARNING, "its server runs with the daemon", "service daemon start")
        return

    async def look() -> cluster.Survey:
        client = await connect_to_look(service.home, service.settings)
        seen = await cluster.require(client)
        await cluster.probe(client)
        return seen

    try:
        seen = asyncio.run(look())
    except cluster.NotPreparedError as error:
        yield Finding("temporal", Level.WRONG, error.message, error.hint)
    except UnreachableError as error:
        fix = "service daemon status" if runs and own else error.hint
        yield Finding("temporal", Level.WRONG, error.message, fix)
    else:
        has = f"has the namespace {seen.server.namespace} and every search attribute"
        yield Finding("temporal", Level.OK, f"{seen.server.address} {has}")


def seals(service: Service) -> Iterator[Finding]:
    """Show the fingerprint of the seal key, for people to compare: all hosts of a service need one key (ruling N1)."""
    key, settings = seal_key.read(service.home.root), service.settings
    if key is None:
        yield Finding("seals", Level.OK, "there is no seal.key yet; it is made when something is started")
        return
    how = "encrypted" if settings.temporal.encrypt else "sealed"
    by_hand = "taken" if settings.by_hand else "refused"
    if near := settings.reach_the_server:
        by_hand += f", and agents of {', '.join(near)} can reach the server"
    fingerprint = seal_key.fingerprint(key)[: seal_key.SHOWN]
    former = ", ".join(path.name[: seal_key.SHOWN] for path in seal_key.files(service.home.root))
    opens = f", and {former} still opens older data" if former else ""
    says = f"what is written for Temporal is {how} with seal.key {fingerprint}{opens}; messages by hand are {by_hand}"
    level, fix = Level.OK, ""
    if near and settings.by_hand:
        says, level, fix = f"{says}: they can answer for people", Level.WARNING, "set by_hand = false in [temporal]"
    if service.home.seal_key_open.exists():
        says, level, fix = f"{says}; {KEY_OPEN}", Level.WRONG, _ways_to_replace(service)
    yield Finding("seals", level, says, fix)


def _ways_to_replace(service: Service) -> str:
    """Return the commands that replace a key which other accounts could have read."""
    now = f"service daemon stop; rm '{service.home.seal_key}'; service daemon start"
    if service.settings.store.url:
        return (
            "service daemon stop, on every host; then on one: service host replace-key --now"
            "  (this ends what is under way)"
        )
    if service.settings.temporal.address:
        return f"stop the daemon of every host; {now}; copy that key to all hosts  (this ends what is under way)"
    later = "service daemon stop; service daemon start, when nothing is under way"
    return f"{later}  (or now, which ends what is under way: {now})"


KEY_OPEN = (
    "other accounts could have read it, so they could speak as the service: it is replaced when the daemon starts and "
    "no task or run is under way or blocked"
)


def daemon(service: Service) -> Iterator[Finding]:
    seen = daemon_state.status(service.home)
    if not seen.running:
        problem = f"; the last start failed: {seen.state.problem}" if seen.state and seen.state.problem else ""
        yield Finding("daemon", Level.WARNING, f"not running, so nothing is worked on{problem}", "service daemon start")
        return
    if silence := daemon_state.silence(seen):
        yield Finding("daemon", Level.WRONG, f"{silence}; it restarts no member that ends", daemon_state.RESTART)
    else:
        yield Finding("daemon", Level.OK, f"process {seen.pid}, up {seen.uptime}")
    for child in seen.state.children if seen.state else ():
        good = child.phase == "running"
        waits = f", at {child.again_at.astimezone():%H:%M:%S %Z}" if child.again_at else ""
        says = f"{child.note}{waits}" if child.note else f"{child.phase}, restarted {quantity(child.restarts, 'time')}"
        level, fix = (Level.OK, "") if good else (Level.WRONG, f"tail '{child.log}'")
        if good and child.frozen_at and time.time() - child.frozen_at.timestamp() < FROZEN_SECONDS:
            says += f", last at {child.frozen_at.astimezone():%H:%M:%S %Z}: it had given no sign of life for a minute"
            level, fix = Level.WARNING, f"service daemon logs {child.name}"
        yield Finding(child.name, level, says, fix)


def stalls(service: Service) -> Iterator[Finding]:
    """Report the stalls that the workers found."""
    from activities.store import stall_rows

    if not service.settings.store.url and not service.home.store.exists():
        return
    for stall in stall_rows.every(service.store):
        yield Finding("stalled", Level.WRONG, f"{stall.what}: {stall.says}", "; ".join(WAYS))


def stale(service: Service) -> Iterator[Finding]:
    """Find processes that run with outdated settings (ruling K4)."""
    for process in stale_processes(service):
        yield Finding("settings", Level.WARNING, "\n".join(in_words(process)), process.restart)


def runtimes(service: Service) -> Iterator[Finding]:
    """Check runtimes. Their faults are only warnings, because the shell runtime's agents need none of them."""
    checked = [runtime for runtime in check_runtimes(service) if runtime.name != "shell"]
    if not (some := any_works(checked)):
        says = "none works: only agents of the shell runtime can do anything"
        yield Finding("runtimes", Level.WARNING, says, "service runtime check")
    for runtime in checked:
        says = " ".join(word for word in (runtime.version, runtime.says) if word)
        needless = some and runtime.path is None
        level = Level.OK if needless or not runtime.fix else Level.WARNING
        yield Finding(runtime.program, level, says, "" if needless else runtime.fix)


def boxes(service: Service) -> Iterator[Finding]:
    """Check the boxes with a program that tries to break out."""
    yield from box_findings(service)
    yield from limit_findings(service)


def leftovers(service: Service) -> Iterator[Finding]:
    """Report processes that workers found and ended at their start, in the last day."""
    from activities.runs.orphans import recent

    for orphan in recent(service.home.orphans, LEFT_OVER_SECONDS):
        at = time.strftime("%H:%M %Z", time.localtime(orphan["at"]))
        fix = f"less '{service.home.orphans}'"
        yield Finding("left over", Level.WARNING, f"{orphan['said']}; ended at {at}", fix)


def github(service: Service) -> Iterator[Finding]:
    """Check the GitHub account, if there is one; else import nothing."""
    if service.settings.github.is_configured:
        from bridge.operations.health.github import findings

        yield from findings(service)


def releases(service: Service) -> Iterator[Finding]:
    """Compare the hosts' releases. No-op for a single host."""
    if service.settings.store.url:
        from bridge.operations.health.releases import of_releases

        yield from of_releases(service)


def tools(service: Service) -> Iterator[Finding]:
    """Check the entries of the tools that were given the service by MCP (ruling S5)."""
    from bridge.operations.access import mcp_clients

    for tool in mcp_clients.every(service):
        again = f"service mcp remove {tool.client} && service mcp add {tool.client} --scope {tool.scope}"
        if tool.wrong:
            yield Finding(f"mcp {tool.client}", Level.WARNING, tool.wrong, again)
        else:
            yield Finding(f"mcp {tool.client}", Level.OK, f"may use the service by MCP, with the scope {tool.scope}")


CHECKS: tuple[Check, ...] = (
    *(python, git, home, disk, settings, stale, store, fleet, temporal, releases, seals, daemon, stalls),
    *(github, tools, libgit2, repositories, runtimes, boxes, leftovers),
)
GROUND = (python, git, home, disk, settings)
"""Quick checks, and those that all others need: a home, and settings that can be read."""
WAITING = (runtimes, boxes)
"""Checks that wait for programs; they begin first."""
READ_THE_STORE = (fleet, stalls, releases, github, tools, repositories)


def _carefully(check: Check, service: Service) -> Iterator[Finding]:
    """Run a check; report an exception as a finding of the check."""
    try:
        yield from check(service)
    except SettingsError as error:
        if check is settings:  # reported once: the other checks fail for this very reason
            yield Finding(check.__name__, Level.WRONG, error.message, error.hint)
    except ServiceError as error:
        if error.code != "store_older":  # the check of the store says so
            yield Finding(check.__name__, Level.WRONG, error.message, error.hint)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        yield Finding(check.__name__, Level.WRONG, f"cannot be checked: {error}")
