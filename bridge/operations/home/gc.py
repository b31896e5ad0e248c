"""Finding unneeded files and their size, and removing them on demand.

Only trees and pipeline runs that ended some time ago lose files: a tree or run that runs, waits or is blocked may
continue, and keeps all files. Rows stay, and so do branches, settings, keys, audits and backups.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path

from activities.git import hub
from activities.git.work_folder import delete_later, leftovers
from activities.git.work_folder.leftovers import Busy, Ground, Leftover, LeftoverKind
from activities.git.work_folder.service_git_dir import side_of
from activities.git.work_folder.worktrees import worktree_prefix
from activities.host import checkouts
from activities.host.helper_process import worth_keeping
from activities.runs import orphans
from activities.runs.run_folders import Key
from activities.runs.supervised_run import Claim
from activities.store import attempt_rows, job_rows, run_rows, tree_rows
from activities.store.queries import now
from activities.store.registry.repo_rows import Repo
from activities.store.run_rows import Over, over
from bridge.machine.step_messages import Step, unheard
from bridge.operations.branches import drops, hub_work
from bridge.operations.branches.drops import UnmergedWork
from bridge.operations.home.home_lock import by_itself
from bridge.operations.home.overview import sizes
from bridge.operations.registry import repos
from bridge.operations.service import Service
from workflows.model.errors import ServiceError, UsageError
from workflows.pipeline.plan import OPEN_RUNS
from workflows.text.durations import DurationError, abbreviate, format_duration, parse_duration

_ROOT = re.compile(r"job-[0-9a-v]{12}")
_RUN = re.compile(r"prun-[0-9a-v]{12}")


@dataclass(frozen=True)
class Swept:
    """A worktree or branch left in a repository. It is kept without `--yes`, or for a given reason."""

    repo: str
    found: tuple[Leftover, ...]
    removed: bool
    problem: str = ""

    @property
    def removable(self) -> int:
        return sum(not leftover.keep for leftover in self.found)


LEAST = 3600.0
AGAIN = "service gc --older-than 30d"


class What(StrEnum):
    """The kinds of files that can be removed."""

    RUNS = "runs"
    SESSIONS = "sessions"
    """Session folders of agents' programs."""
    ARTIFACTS = "artifacts"
    WORKTREES = "worktrees"
    LOGS = "logs"
    MIRRORS = "mirrors"
    REFERENCES = "references"
    """Git refs at the hub of a repository."""


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
class KindSize:
    """The disk space of all things of a kind."""

    what: What
    count: int
    bytes: int


@dataclass(frozen=True)
class Reclaimed:
    """The things that could be, or have been, removed."""

    before: str
    """Only files of trees and runs that ended before this time (ISO 8601)."""
    older_than: str
    removed: bool
    rooms: tuple[KindSize, ...]
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
    before = now(service.store) - seconds
    ended = over(service.store, before)
    things = [
        *_runs(service, ended),
        *_sessions(service, ended),
        *_worktrees(service, ended),
        *_logs(service, before),
    ]
    things += [*_mirrors(service, before), *_references(service, ended), *_artifacts(service, ended, before)]
    gone, problems = _remove(things) if yes else (things, ())
    rooms = tuple(room for what in What if (room := _room(what, gone)).count or what not in OF_REMOTES)
    return Reclaimed(
        before=datetime.fromtimestamp(before, UTC).isoformat(timespec="seconds"),
        older_than=format_duration(seconds),
        removed=yes,
        rooms=rooms,
        kept=tuple(filter(None, [_still_open(ended.open)])),
        problems=problems,
        bytes=sum(room.bytes for room in rooms),
        unmerged=tuple(drops.find_unmerged(service, drops.Choice(older_than=older_than))),
    )


def _seconds(older_than: str) -> float:
    try:
        seconds = parse_duration(abbreviate(older_than))
    except DurationError as error:
        raise UsageError(f"--older-than {error}", AGAIN) from None
    if seconds < LEAST:
        raise UsageError("--older-than must be an hour at least", AGAIN)
    return seconds


def _still_open(count: int) -> str:
    if not count:
        return ""
    they = "a task that is not over: it" if count == 1 else f"{count} trees that are not over: they"
    return f"all of {they} may go on (running, waiting for people, or blocked)"


def _runs(service: Service, ended: Over) -> Iterator[Thing]:
    def is_over(key: Key) -> bool:
        row = attempt_rows.get(service.store, *key) if ended.has(key[0]) else None
        return row is not None and row.ended_at is not None

    for run_dir in orphans.old_runs(service.home.runs, is_over):
        yield Thing(What.RUNS, run_dir, _size(run_dir), partial(orphans.discard_run, run_dir))


def _sessions(service: Service, ended: Over) -> Iterator[Thing]:
    for folder in ended.folders(service.home.programs):
        yield Thing(What.SESSIONS, folder, _size(folder), partial(delete_later.delete, folder))
    former = service.home.root / "runtimes"
    if former.exists() and not ended.open:  # of releases in which trees shared Kimi's folders
        yield Thing(What.SESSIONS, former, _size(former), partial(delete_later.delete, former))


def _artifacts(service: Service, ended: Over, before: float) -> Iterator[Thing]:
    """Yield artifacts older than everything that may need them, and inputs gathered for ended coordinators."""
    oldest = min(before, ended.since or before)
    for old in service.artifacts.old(oldest, before):
        yield Thing(What.ARTIFACTS, old.name, old.bytes, old.remove)
    for folder in ended.folders(service.home.artifacts / "delegations"):
        yield Thing(What.ARTIFACTS, folder, _size(folder), partial(shutil.rmtree, folder))


def _worktrees(service: Service, ended: Over) -> Iterator[Thing]:
    """Yield worktrees whose content is elsewhere too, as `service repo sweep` finds them."""

    def busy(name: str) -> bool:
        return not ended.has(root_in(name)) or is_busy(service, name)

    for repo in checkouts.every_here(service):
        ground = _ground(service, repo, busy)
        unneeded = []
        with suppress(ServiceError):  # a missing checkout: `service doctor` reports it
            kind = LeftoverKind.WORKTREE
            unneeded = [left for left in leftovers.leftovers(ground) if left.kind is kind and not left.keep]
        for left in unneeded:
            path = Path(left.name)
            yield Thing(What.WORKTREES, path, _size(path) + _size(side_of(path)), partial(_sweep, ground, left))


def _sweep(ground: Ground, left: Leftover) -> None:
    if why := leftovers.remove(ground, left).keep:
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
    """Yield refs at hubs that are no longer needed. Skip a hub that can't be reached."""
    for repo in checkouts.every_here(service):
        with suppress(ServiceError):
            for name in hub_leftovers(service, repo, lambda name: not ended.has(root_in(name))):
                yield Thing(What.REFERENCES, name, 0, partial(hub_work.remove, service, repo, [name]))


def _remove(things: list[Thing]) -> tuple[list[Thing], tuple[str, ...]]:
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


def _room(what: What, things: list[Thing]) -> KindSize:
    sizes = [thing.bytes for thing in things if thing.what is what]
    return KindSize(what, len(sizes), sum(sizes))


def _size(path: Path) -> int:
    return sum(sizes(path))


def sweep(service: Service, name: str | None = None, *, yes: bool = False, step: Step = unheard) -> list[Swept]:
    """List what was left in one repository or in all of this host; with `yes`, remove what can be removed."""
    chosen = [repos.get(service, name)] if name else checkouts.every_here(service)
    swept = []
    for number, repo in enumerate(chosen, 1):
        step(f"looking at {repo.name}, {number} of {len(chosen)}")
        swept.append(_sweep_repository(service, repo, yes=yes))
    return swept


def _sweep_repository(service: Service, repo: Repo, *, yes: bool) -> Swept:
    if repo.host != service.settings.host:
        there = f"it is on the host {repo.host}; there: ssh {repo.host} service repo sweep {repo.name}"
        return Swept(repo.name, (), removed=False, problem=there)
    ground = _ground(service, repo, lambda name: is_busy(service, name))
    remains = list[Leftover]()
    try:
        remains = leftovers.leftovers(ground)
        if yes:
            remains = [leftovers.remove(ground, leftover) for leftover in remains]
        at_hub = hub_leftovers(service, repo, ground.busy)
        if yes:
            merged = [each.name for each in remains if each.kind is LeftoverKind.BRANCH and not each.keep]
            hub_work.remove(service, repo, [*merged, *at_hub])
    except ServiceError as fault:
        return Swept(repo.name, tuple(remains), removed=yes, problem=fault.message)
    return Swept(repo.name, (*remains, *(Leftover(LeftoverKind.REFERENCE, each) for each in at_hub)), removed=yes)


def _ground(service: Service, repo: Repo, busy: Busy) -> Ground:
    return Ground(Path(repo.path), service.home.worktrees, worktree_prefix(repo.name), busy, worth_keeping)


def hub_leftovers(service: Service, repo: Repo, busy: Busy) -> list[str]:
    """Return the refs at the hub that are no longer needed: snapshots of trees that are over, lines and kept commits of
    trees without a branch there, and bases that no open tree uses.
    """
    through = checkouts.hub_of(service, repo)
    if through is None or not checkouts.is_made(service, repo):
        return []
    names = hub.commits_by_name(Path(repo.path), through)
    bases = tree_rows.open_bases(service.store, repo.name)
    with_branches = {root_in(name) for name in names if name.startswith("job-")}

    def is_needed(name: str) -> bool:
        if name.startswith(hub.BASES):
            return name.removeprefix(hub.BASES) in bases or bool(root_in(name) and busy(name))
        return busy(name) or (name.startswith((hub.LINES, hub.KEPT)) and root_in(name) in with_branches)

    kinds = (hub.LINES, hub.BASES, hub.SNAPS, hub.KEPT)
    return [name for name in names if name.startswith(kinds) and not is_needed(name)]


def root_in(name: str) -> str:
    """Return the tree whose id is in the name of a worktree or branch; empty if the name has none."""
    match = _ROOT.search(name)
    return match[0] if match else ""


def is_busy(service: Service, name: str) -> bool:
    """Return whether a tree or a pipeline's run is open, a tree can be re-opened, or one of them has a running program;
    an unknown one counts as busy.
    """
    owners = _owners(service, name)
    if owners is None:
        return True
    runs = (run for owner in owners for run in attempt_rows.of_job(service.store, owner))
    return any((claim := Claim.read(Path(run.run_dir))) is not None and claim.alive for run in runs)


def _owners(service: Service, name: str) -> list[str] | None:
    """Return the jobs, or the stages, of the ended tree or run in a worktree's or branch's name; None for any other."""
    store = service.store
    if match := _RUN.search(name):
        run = run_rows.get(store, match[0])
        if run is None or run.record.state in OPEN_RUNS:
            return None
        return [f"{match[0]}.{stage.number}" for stage in run_rows.stages_of(store, match[0])]
    root = root_in(name)
    task = job_rows.task_of(store, root) if root else None
    if task is None or not task.state.has_ended:
        return None
    return [job.job_id for job in job_rows.tree(store, task.root_job_id)]
