"""Work in progress at the hub (ruling Q6): pushed every minute in which files changed, and removed when the job ends.

Each attempt of a job has a separate snapshot, so that a host that comes back can't replace the snapshot of the attempt
that continued.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from activities.git import git_branches, hub
from activities.git.hub import Hub
from activities.git.work_folder import work_in_progress
from activities.git.work_folder.service_git_dir import side_of
from activities.git.work_folder.work_in_progress import InProgress
from activities.git.work_folder.worktrees import Worktree
from activities.host.helper_process import LOOK_SECONDS, apart
from activities.host.slots import in_turn, out_of_turn
from activities.stations.hook import reach
from workflows.model.errors import NotFoundError, ServiceError
from workflows.model.jobs import JobRun

log = logging.getLogger(__name__)

EVERY_SECONDS = 60.0


def name_of(job_id: str, attempt: int) -> str:
    """Return the name of an attempt's snapshot below the hub's namespace."""
    return f"{hub.SNAPS}{job_id}{f'-attempt{attempt}' if attempt > 1 else ''}"


def latest(repo: Path, through: Hub, job_id: str, attempt: int = 1) -> str | None:
    """Fetch a job's latest snapshot, of this attempt or an earlier one. Return its commit; None if there is none."""
    for number in range(attempt, 0, -1):
        with contextlib.suppress(NotFoundError):
            return hub.fetch_one(repo, through, name_of(job_id, number))
    return None


def adopt(repo: Path, through: Hub, run: JobRun, branch: str) -> tuple[str, str] | None:
    """Return the snapshot from which a moved job continues, and its base. The snapshot then belongs to this attempt
    (Q6).

    The branch moves to the snapshot's base. If the branch has commits that the base lacks, return None: the job begins
    afresh.
    """
    with out_of_turn():
        commit = latest(repo, through, run.job_id, run.moved_from)
    base = git_branches.commit(repo, f"{commit}^") if commit else None
    if commit is None or base is None:
        return None
    if (tip := git_branches.tip(repo, branch)) not in (None, base):
        if not git_branches.contains(repo, base, tip or ""):
            return None
        git_branches.move(repo, branch, base, tip, "service: goes on from a snapshot")
    with out_of_turn():
        hub.overwrite(repo, through, commit, name_of(run.job_id, run.attempt))
    return commit, base


def take(worktree: Worktree, job_id: str, attempt: int, through: Hub | None) -> InProgress:
    """Commit a work folder's current files, without those that may not be pushed to this hub."""
    to_branches = through is not None and through.has_branches
    return apart(LOOK_SECONDS, work_in_progress.take, worktree, job_id, attempt, to_branches=to_branches)


@dataclass
class Snapshots:
    """The snapshots of one attempt. Without a remote, or for a job that may not write, it makes none."""

    worktree: Worktree
    job_id: str
    attempt: int
    through: Hub | None
    left_out: tuple[str, ...] = field(default=())
    """The files that the last snapshot lacks, with the reason of each."""

    @classmethod
    def of(cls, run: JobRun, worktree: Worktree, through: Hub | None) -> "Snapshots":
        """Return the snapshots of an attempt. An attempt without a branch makes none."""
        return cls(worktree, run.job_id, run.attempt, through if worktree.branch is not None else None)

    @asynccontextmanager
    async def every_minute(self) -> AsyncIterator[None]:
        """Push the work every minute while the context lasts."""
        if self.through is None:
            yield
            return
        saving: list[asyncio.Future[None]] = []

        async def keep_on() -> None:
            while True:
                await asyncio.sleep(EVERY_SECONDS)
                saving[:] = [asyncio.ensure_future(self.save())]
                await asyncio.shield(saving[0])

        keeping = asyncio.create_task(keep_on())
        try:
            yield
            await asyncio.gather(*saving, return_exceptions=True)  # the work folder is read and removed next
        finally:
            keeping.cancel()

    async def save(self) -> None:
        """Push a snapshot of the work folder if it has changed; log the reason if that fails."""
        if self.through is not None:
            await in_turn(self._save)

    def _save(self) -> None:
        try:
            made = take(self.worktree, self.job_id, self.attempt, self.through)
            if made.left_out != self.left_out:
                self.left_out = made.left_out
                log.warning("%s: left out of its snapshot: %s", self.job_id, "; ".join(made.left_out) or "nothing")
            if made.commit and made.commit != work_in_progress.pushed_snapshot(self.worktree):
                with out_of_turn():
                    self.push(made.commit)
        except Exception as fault:  # whatever it is, the next minute is another try
            log.warning("%s: its work in progress is not pushed: %s", self.job_id, fault)

    def push(self, commit: str) -> None:
        """Push a snapshot. Record it before the push, so that a snapshot that may have reached the hub is removed at
        the end.
        """
        if self.through is not None:
            side = side_of(self.worktree.path)
            before = work_in_progress.pushed_snapshot(self.worktree)
            work_in_progress.mark_pushed(self.worktree, before or "about to be")
            hub.overwrite(side, self.through, commit, name_of(self.job_id, self.attempt))
            reach("snapshot pushed", self.job_id)
            work_in_progress.mark_pushed(self.worktree, commit)

    def remove(self, repo: Path) -> None:
        """Remove this job's snapshots at the hub if this attempt has pushed one. After an error, a sweep removes them
        later.
        """
        if self.through is not None and work_in_progress.pushed_snapshot(self.worktree):
            with contextlib.suppress(ServiceError, OSError), out_of_turn():
                names = [name_of(self.job_id, number) for number in range(1, self.attempt + 1)]
                hub.remove(repo, self.through, names)
