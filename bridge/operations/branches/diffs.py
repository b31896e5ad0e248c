"""The diff of a job: of its commits, of its worktree while it runs, or of changes of a reader that were discarded; and
the diff of all work of a tree.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from activities.git import branches as git
from activities.git.branches import FileChange, changes_of, patch
from activities.git.command import printable
from activities.git.merges.task_line import draw
from activities.git.work_folder import worktrees
from activities.git.work_folder.worktree_changes import capture_diff
from activities.host.helper_process import apart
from activities.redaction.redact import redacted
from activities.store import attempts as stored_runs
from bridge.operations.branches import branches, task_line
from bridge.operations.jobs import jobs
from bridge.operations.jobs.other_hosts import OtherHost
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError
from workflows.model.states import JobState

DIFF_SECONDS = 30.0
"""Seconds that reading the worktree of a running job may take."""

JSON_LIMIT = 1_000_000


@dataclass(frozen=True)
class JobDiff:
    """The source of a diff: two commits of a repository, or a stored text."""

    job_id: str
    source: str
    """`commits`, `worktree` (the job still runs), `discarded` (a reader's changes, which the service threw away), or
    `tree` (all work of a tree that merges cleanly, against the tree's base).
    """
    repo: Path | None = None
    base: str = ""
    head: str = ""
    text: str = ""
    left_out: tuple[str, ...] = ()
    """Legs of a tree whose work conflicts with what is shown."""

    @property
    def files(self) -> tuple[FileChange, ...]:
        """Return the changes by file."""
        return git.changes(self.repo, self.base, self.head) if self.repo else changes_of(self.text)

    def pieces(self, *, binary: bool = False) -> Iterator[bytes]:
        """Yield the diff piece by piece, however large it is."""
        if self.repo is None:
            return iter([self.text.encode()])
        return patch(self.repo, self.base, self.head, binary=binary)


def of_job(service: Service, job_id: str) -> JobDiff:
    """Return the job's diff against the commit it started from."""
    job = jobs.get(service, job_id)
    runs = stored_runs.of_job(service.store, job_id)
    if job.state in {JobState.QUEUED, JobState.RUNNING}:
        if runs and runs[-1].host != service.settings.host:
            there = OtherHost(service, runs[-1].host, f"{job_id} runs", f"service job diff {job_id}")
            return JobDiff(job_id, "worktree", text=there.text(f"jobs/{job_id}/worktree"))
        worktree = worktrees.find(Path(runs[-1].worktree)) if runs and runs[-1].worktree else None
        if worktree is None:
            raise NotFoundError(f"{job_id} is {job.state} and has no worktree here", f"service job show {job_id}")
        diff = apart(DIFF_SECONDS, capture_diff, worktree)
        return JobDiff(job_id, "worktree", text=redacted(diff.text) + ("\n[cut here]\n" if diff.cut else ""))
    if job.head_sha and job.branch:
        repo, head = branches.with_work(service, job), job.head_sha
        run = next((run for run in reversed(runs) if run.branch == job.branch), None)
        base = ((run.diagnostics or {}).get("start_sha") or run.base_sha) if run else None
        if base is None or git.commit(repo, head) is None or git.commit(repo, base) is None:
            raise NotFoundError(
                f"the commits of {job_id} are no longer in {printable(str(repo))}: {job.branch} was at {head}",
                f"service job branches {job_id}",
            )
        return JobDiff(job_id, "commits", repo, base, head)
    kept = next((run for run in reversed(runs) if (run.diagnostics or {}).get("discarded_diff")), None)
    text = (kept.diagnostics or {})["discarded_diff"] if kept else ""
    return JobDiff(job_id, "discarded", text=text)


def of_tree(service: Service, job_id: str) -> JobDiff:
    """Return all work of a tree, merged as far as it merges cleanly, against the commit that the tree began from."""
    root = jobs.get(service, job_id).root_job_id
    tree = branches.of_tree(service, root, typed=f"service job diff {job_id} --tree")
    if tree.problem:
        raise NotFoundError(f"the repository cannot be read: {tree.problem}", tree.way_on)
    if not tree.base:
        raise RefusedError(f"{root} has no base yet, or is of a release that kept none", f"service job branches {root}")
    line = draw(Path(tree.path), tree.base, tree.head or tree.base, task_line.parts_of(service, tree))
    left_out = tuple(each.leg for each in line.left_out)
    return JobDiff(root, "tree", Path(tree.path), tree.base, line.commit, left_out=left_out)


def as_json(diff: JobDiff) -> dict[str, Any]:
    """Return the JSON for `--json`: the diff, cut at a limit."""
    files = [asdict(each) | {"path": printable(each.path)} for each in diff.files]
    taken = b""
    for piece in diff.pieces():
        taken += piece
        if len(taken) > JSON_LIMIT:
            break
    return {
        "job_id": diff.job_id,
        "source": diff.source,
        "base": diff.base or None,
        "head": diff.head or None,
        "files": files,
        "diff": taken[:JSON_LIMIT].decode("utf-8", "replace"),
        "cut": len(taken) > JSON_LIMIT,
    }
