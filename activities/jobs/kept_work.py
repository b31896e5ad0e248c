"""The work of attempts that moved to other hosts while this one was away: pushed to refs of their own at the hub (Q5).

The agents are ended first. Each step may be repeated; work that can't be pushed now stays in its work folder.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping
from pathlib import Path

from activities.git import branches, hub
from activities.git.work_folder import worktrees
from activities.git.work_folder.service_git_dir import side_of
from activities.git.work_folder.worktrees import Worktree
from activities.host import checkouts
from activities.host.context import Context
from activities.jobs import snapshots
from activities.runs import orphans
from activities.runs.run_folders import Key, key_of
from activities.store import attempts, jobs, moves
from activities.store import branches as branch_events
from activities.store.attempts import AttemptRow
from activities.store.registry import repos
from workflows.model.errors import ServiceError
from workflows.model.event_payloads import BranchEvent, BranchEventKind

log = logging.getLogger(__name__)


async def settle(context: Context, logged: Mapping[Key, str] | None = None) -> dict[Key, str]:
    """End the agents of all attempts that moved away from this host, and push their work; the rest waits for later.

    Return why work is not kept yet, by attempt; a fault that was `logged` the last time is not logged again.
    """
    moved = await asyncio.to_thread(moves.to_keep, context.store, context.host)
    left = [key for key in moved if not context.stops.runs(key)]  # its call ends it
    if left:
        await end(context, left)
    logged, faults = logged or {}, dict[Key, str]()
    for key in left:
        try:
            await asyncio.to_thread(_settle, context, key)
        except (ServiceError, OSError) as fault:
            faults[key] = str(fault)
            if logged.get(key) != faults[key]:
                log.warning("the work of %s, attempt %d, is not kept yet: %s", *key, fault)
    return faults


async def end(context: Context, keys: Collection[Key]) -> int:
    """End the agents of these attempts, by job and number; return how many ran."""
    alive = await asyncio.to_thread(orphans.find_orphans, context.home.runs, set())
    found = [orphan for orphan in alive if key_of(orphan.run_dir.name) in keys]
    await orphans.end(found, context.home.orphans, context.settings.worker.stop_grace)
    return len(found)


def _settle(context: Context, key: Key) -> None:
    row, job = attempts.get(context.store, *key), jobs.get(context.store, key[0])
    ref = ""
    if row is not None and job is not None and row.worktree is not None:
        repo, path = checkouts.path_by_name(context, job.repo), Path(row.worktree)
        ref = _kept(context, row, job.repo, repo) if row.branch else ""
        if row.branch is None or "-shared-" not in row.branch:  # the folder is not other jobs' too
            worktrees.dispose(repo, path, later=True)
    moves.keep(context.store, key, ref)


def _kept(context: Context, row: AttemptRow, name: str, repo: Path) -> str:
    """Push the attempt's work, uncommitted files too, and record the event. Return the ref; empty without work."""
    through = checkouts.hub_of(context, repos.registered(context.store, name))
    commit, source = _work(row, repo, through)
    if through is None or commit is None:
        return ""
    own = f"{hub.KEPT}{row.job_id}-{row.attempt}"
    hub.overwrite(source, through, commit, own)
    ref = through.ref(own)
    event = BranchEvent(actor=context.host, branch=ref, head_sha=commit, task_branch="", merged=False)
    message = f"{context.host} came back: its work on attempt {row.attempt}, which had moved, is kept as {ref}"
    branch_events.record(context.store, BranchEventKind.KEPT, row.job_id, event, message)
    return ref


def _work(row: AttemptRow, repo: Path, through: hub.Hub | None) -> tuple[str | None, Path]:
    """Return a commit of the attempt's work folder, else of its branch, and the repository that has the commit."""
    path = Path(row.worktree or "")
    if worktree := worktrees.find(path):
        worktree = Worktree(path, row.base_sha or worktree.base, worktree.branch, worktree.names)
        made = snapshots.take(worktree, *row.key, through)
        return made.commit or None, side_of(path)
    tip = branches.tip(repo, row.branch or "")
    return (tip if tip != row.base_sha else None), repo
