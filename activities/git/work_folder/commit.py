"""Commit an agent's uncommitted work, and copy its objects to the registered repository (rulings I1, N3)."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING

from activities.git import git_branches
from activities.git.command import printable
from activities.git.git_branches import objects_errors
from activities.git.library import let_go, library, open_repository, signature
from activities.git.locks import clear_ref_lock
from activities.git.work_folder import service_git_dir
from activities.git.work_folder.service_git_dir import side_of
from activities.git.work_folder.worktree_changes import WorktreeState, look
from activities.git.work_folder.worktrees import Worktree
from activities.redaction.redact import redact_text
from workflows.model.errors import RefusedError

if TYPE_CHECKING:
    from pygit2 import Odb, Oid, Repository


NONE: Mapping[str, str] = MappingProxyType({})
SUBJECT, BODY = 72, 2000
"""Limits of a commit's message, in characters."""


def commit_all(
    worktree: Worktree, job_id: str, summary: str, seen: WorktreeState | None = None, trailers: Mapping[str, str] = NONE
) -> str | None:
    """Commit all but ignored files on the job's branch, and return its head; None if the job changed nothing.

    The agent's own commits stay. Call this after the run has ended. Repositories that the agent made inside the work
    folder are left out, because a commit cannot hold them.
    """
    seen = seen or look(worktree)
    if seen.refused is not None:
        raise seen.refused
    head = _commit_changes(worktree, seen, message(summary or job_id, trailers_of(job_id) | dict(trailers)))
    _bring_home(worktree, seen, head)
    return None if head == worktree.base else head


def trailers_of(
    job_id: str, *, attempt: int = 0, agent: str = "", model: str = "", task_id: str = "", branch: str = ""
) -> dict[str, str]:
    """Return the trailers of a commit that the service makes, in their order; `message` leaves the empty ones out."""
    who = {"Job": job_id, "Attempt": str(attempt or ""), "Agent": agent, "Model": model}
    return who | {"Task": task_id, "Branch": branch}


def message(summary: str, trailers: Mapping[str, str]) -> str:
    """Build a commit message with a subject from the summary, the whole summary if it is longer, and trailers (ruling
    I1).
    """
    text = " ".join(redact_text(summary).split())
    subject = text if len(text) <= SUBJECT else f"{text[: SUBJECT - 1].rpartition(' ')[0] or text[: SUBJECT - 1]}…"
    body = [] if subject == text else ["\n".join(wrap(text[:BODY], SUBJECT))]
    lines = (f"{name}: {' '.join(redact_text(value).split())}" for name, value in trailers.items() if value)
    return "\n\n".join([subject, *body, "\n".join(lines)]) + "\n"


def _commit_changes(worktree: Worktree, seen: WorktreeState, message: str) -> str:
    with objects_errors(worktree.path):
        repository = open_repository(side_of(worktree.path))
        try:
            pygit2 = library()
            before = repository.revparse_single(seen.head).peel(pygit2.Commit)
            merging = [each for each in seen.merging if not git_branches.holds_all(repository, seen.head, each)]
            if str(before.tree_id) == seen.tree and not merging:
                return seen.head
            parents, who = [before.id, *(pygit2.Oid(hex=each) for each in merging)], signature()
            text = message.encode("utf-8", "replace").decode()
            return str(repository.create_commit(None, who, who, text, pygit2.Oid(hex=seen.tree), parents))
        finally:
            let_go(repository)


def _bring_home(worktree: Worktree, seen: WorktreeState, head: str) -> None:
    """Move the branch in the registered repository to the head, unless commits would be lost there or in the work
    folder.
    """
    if worktree.branch is None:
        return
    common, side = seen.common, side_of(worktree.path)
    if service_git_dir.read_built_on(worktree.path) is None:
        service_git_dir.keep_built_on(worktree.path, git_branches.commits_built_on(side, common, head, worktree.base))
    tip = git_branches.tip(common, worktree.branch) or worktree.base
    for commit in {tip, seen.own} - {head}:
        if not git_branches.contains(side, head, commit):
            where = printable(str(worktree.path))
            raise RefusedError(
                f"the job left {where} at {head}, which does not contain its branch {worktree.branch}",
                f"git -C {where} log --oneline --graph HEAD {worktree.branch}",
            )
    hand_over(side, common, head)
    clear_ref_lock(common, worktree.branch)
    old = git_branches.tip(common, worktree.branch)
    if head != old and not git_branches.move(common, worktree.branch, head, old, "service: the work of a job"):
        raise RefusedError(f"{worktree.branch} is being changed by somebody else", f"git log {worktree.branch}")


def hand_over(side: Path, common: Path, commit: str) -> None:
    """Copy a commit and all its objects from the service's side to the registered repository.

    An object is written after those it refers to, so a kill leaves only whole objects.
    """
    source, target = open_repository(side), open_repository(common)
    try:
        with objects_errors(side):
            _commits(source, target.odb, library().Oid(hex=commit))
    finally:
        let_go(source)
        let_go(target)


def _commits(source: "Repository", target: "Odb", wanted: "Oid") -> None:
    """Copy missing commits, each after its parents."""
    waiting: list[tuple[Oid, bool]] = [(wanted, False)]
    while waiting:
        oid, ready = waiting.pop()
        if oid in target:
            continue
        commit = source[oid].peel(library().Commit)
        if ready:
            _trees(source, target, commit.tree_id)
            _write(source, target, oid)
        else:
            waiting.append((oid, True))
            waiting += [(parent, False) for parent in commit.parent_ids]


def _trees(source: "Repository", target: "Odb", wanted: "Oid") -> None:
    waiting: list[tuple[Oid, bool]] = [(wanted, False)]
    while waiting:
        oid, filled = waiting.pop()
        if oid in target:
            continue
        if filled:
            _write(source, target, oid)
            continue
        waiting.append((oid, True))
        for entry in source[oid].peel(library().Tree):
            if entry.type_str == "tree":
                waiting.append((entry.id, False))
            elif entry.type_str == "blob" and entry.id not in target:
                _write(source, target, entry.id)


def _write(source: "Repository", target: "Odb", oid: "Oid") -> None:
    kind, data = source.odb.read(oid)
    target.write(kind, data)
