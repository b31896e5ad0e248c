"""Finding unneeded files and their size, and removing them on demand.

Only trees and pipeline runs that ended some time ago lose files: whatever runs, waits or is blocked may go on and keeps
all. Rows stay, and so do branches, settings, keys, audits and backups.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path

from activities.git.work_folder import delete_later
from activities.git.work_folder import leftovers as sweep
from activities.git.work_folder.leftovers import Ground, Kind, Leftover
from activities.git.work_folder.service_git_dir import side_of
from activities.git.work_folder.worktrees import worktree_prefix
from activities.host import checkouts
from activities.host.helper_process import worth_keeping
from activities.runs import orphans
from activities.runs.run_folders import Key
from activities.store import artifacts, attempts
from activities.store.database import now
from activities.store.pipeline_runs import Over, over
from bridge.operations.branches import hub_work, unmerged
from bridge.operations.branches.unmerged import UnmergedWork
from bridge.operations.home import leftovers
from bridge.operations.home.home_lock import by_itself
from bridge.operations.home.overview import sizes
from bridge.operations.service import Service
from workflows.model.errors import ServiceError, UsageError
from workflows.text.durations import DurationError, abbreviated, format_duration, parse_duration

LEAST = 3600.0
AGAIN = "service gc --older-than 30d"


class What(StrEnum):
    """The kinds of files that can be removed."""

    RUNS = "runs"
    SESSIONS = "sessions"
    """Folders of agents' programs."""
    ARTIFACTS = "artifacts"
    WORKTREES = "worktrees"
    LOGS = "logs"
    MIRRORS = "mirrors"
    REFERENCES = "references"
    """Names at the hub of a repository."""


OF_REMOTES = (What.MIRRORS, What.REFERENCES)
"""Kinds that are listed only if there are any: a host may have no repository with a remote."""


@dataclass(frozen=True)
class Thing:
    """A file or folder that can be removed."""

    what: What
    name: Path | str
    bytes: int
    remove: Callable[[], object]


@dataclass(frozen=True)
class Room:
    """The disk space of all things of a kind."""

    what: What
    count: int
    bytes: int


@dataclass(frozen=True)
class Reclaimed:
    """The things that could be, or have been, removed."""

    before: str
    """The moment before which it ended, in ISO 8601."""
    older_than: str
    removed: bool
    rooms: tuple[Room, ...]
    kept: tuple[str, ...]
    """Things that stay, with the reason."""
    problems: tuple[str, ...]
    """Things that could not be removed."""
    bytes: int
    """Size of all things together."""
    unmerged: tuple[UnmergedWork, ...] = ()
    """Unmerged branches of the same trees, which stay."""


@by_itself
def reclaim(service: Service, older_than: str, *, yes: bool) -> Reclaimed:
    """List what can be removed, or with `yes` remove it; after a crash, the next call continues."""
    seconds = _seconds(older_than)
    with service.store.connect() as connection:
        before = now(connection) - seconds
    ended = over(service.store, before)
    needed = _artifacts_needed(service, ended)
    things = [*_runs(service, ended), *_sessions(service, ended), *_worktrees(service, ended), *_logs(service, before)]
    things += [*_mirrors(service, before), *_references(service, ended)]
    things += () if needed else _artifacts(service, ended, before)
    gone, problems = _removed(things) if yes else (things, ())
    rooms = tuple(room for what in What if (room := _room(what, gone)).count or what not in OF_REMOTES)
    kept = (_still_open(ended.open), needed)
    return Reclaimed(
        before=datetime.fromtimestamp(before, UTC).isoformat(timespec="seconds"),
        older_than=format_duration(seconds),
        removed=yes,
        rooms=rooms,
        kept=tuple(filter(None, kept)),
        problems=problems,
        bytes=sum(room.bytes for room in rooms),
        unmerged=tuple(unmerged.find(service, unmerged.Choice(older_than=older_than))),
    )


def _seconds(older_than: str) -> float:
    try:
        seconds = parse_duration(abbreviated(older_than))
    except DurationError as error:
        raise UsageError(f"--older-than {error}", AGAIN) from None
    if seconds < LEAST:
        raise UsageError("--older-than must be an hour at least", AGAIN)
    return seconds


def _still_open(count: int) -> str:
    if not count:
        return ""
    they = "a tree that is not over: it" if count == 1 else f"{count} trees that are not over: they"
    return f"all of {they} may go on (running, waiting for people, or blocked)"


def _runs(service: Service, ended: Over) -> Iterator[Thing]:
    def is_over(key: Key) -> bool:
        if not ended.has(key[0]):
            return False
        row = attempts.get(service.store, *key)
        return row is not None and row.ended_at is not None

    for run_dir in orphans.old_runs(service.home.runs, is_over):
        yield Thing(What.RUNS, run_dir, _size(run_dir), partial(orphans.discard_run, run_dir))


def _sessions(service: Service, ended: Over) -> Iterator[Thing]:
    for folder in sorted(service.home.programs.glob("*/")):
        if ended.has(folder.name):
            yield Thing(What.SESSIONS, folder, _size(folder), partial(delete_later.delete, folder))
    former = service.home.root / "runtimes"
    if former.exists() and not ended.open:  # of releases in which trees shared Kimi's folders
        yield Thing(What.SESSIONS, former, _size(former), partial(delete_later.delete, former))


def _artifacts_needed(service: Service, ended: Over) -> str:
    """Return why no artifact can be removed yet; empty if old ones can."""
    if service.artifacts.shared or ended.since is None or ended.since > artifacts.counted_since(service.home.artifacts):
        return ""
    return "something began before this release and is not over: all artifacts stay until it is"


def _artifacts(service: Service, ended: Over, before: float) -> Iterator[Thing]:
    """Yield artifacts older than everything that may need them, and inputs gathered for ended coordinators."""
    root = service.home.artifacts
    oldest = min(before, ended.since or before)
    for old in service.artifacts.old(oldest, before):
        yield Thing(What.ARTIFACTS, old.name, old.bytes, old.remove)
    for folder in sorted((root / "delegations").glob("*/")):
        if ended.has(folder.name):
            yield Thing(What.ARTIFACTS, folder, _size(folder), partial(shutil.rmtree, folder))


def _worktrees(service: Service, ended: Over) -> Iterator[Thing]:
    """Yield worktrees whose content is elsewhere too, as `service repo sweep` finds them."""

    def busy(name: str) -> bool:
        return not ended.has(leftovers.root_in(name)) or leftovers.is_busy(service, name)

    for repo in checkouts.every_here(service):
        ground = Ground(Path(repo.path), service.home.worktrees, worktree_prefix(repo.name), busy, worth_keeping)
        found = []
        with suppress(ServiceError):  # a missing checkout: `service doctor` reports it
            found = [each for each in sweep.leftovers(ground) if each.kind is Kind.WORKTREE and not each.keep]
        for left in found:
            path = Path(left.name)
            yield Thing(What.WORKTREES, path, _size(path) + _size(side_of(path)), partial(_sweep, ground, left))


def _sweep(ground: Ground, left: Leftover) -> None:
    if why := sweep.remove(ground, left).keep:
        raise ServiceError(why)


def _logs(service: Service, before: float) -> Iterator[Thing]:
    """Yield rotated logs."""
    for path in sorted(service.home.logs.glob("*.log.1")):
        if path.lstat().st_mtime < before:
            yield Thing(What.LOGS, path, _size(path), path.unlink)


def _mirrors(service: Service, before: float) -> Iterator[Thing]:
    for path in checkouts.unused_mirrors(service, before):
        yield Thing(What.MIRRORS, path, _size(path), partial(shutil.rmtree, path))


def _references(service: Service, ended: Over) -> Iterator[Thing]:
    """Yield names at hubs that nothing needs; a hub that is away keeps them until the next time."""
    for repo in checkouts.every_here(service):
        with suppress(ServiceError):
            for name in leftovers.hub_leftovers(service, repo, lambda name: not ended.has(leftovers.root_in(name))):
                yield Thing(What.REFERENCES, name, 0, partial(hub_work.remove, service, repo, [name]))


def _removed(things: list[Thing]) -> tuple[list[Thing], tuple[str, ...]]:
    gone, problems = [], []
    for thing in things:
        try:
            thing.remove()
            gone.append(thing)
        except FileNotFoundError:
            continue  # the worker cleans up too
        except (OSError, ServiceError) as error:
            problems.append(f"{thing.name} could not be removed: {error}")
    return gone, tuple(problems)


def _room(what: What, things: list[Thing]) -> Room:
    sizes = [thing.bytes for thing in things if thing.what is what]
    return Room(what, len(sizes), sum(sizes))


def _size(path: Path) -> int:
    return sum(sizes(path))
