"""Commit an agent's uncommitted work (ruling I1)."""

from collections.abc import Mapping
from textwrap import wrap
from types import MappingProxyType

from activities.git import branches, own_side
from activities.git.branches import faults_said
from activities.git.command import printable
from activities.git.handing_over import hand_over
from activities.git.library import let_go, library, opened, signature
from activities.git.locks import clear_ref_lock
from activities.git.own_side import side_of
from activities.git.worktree_changes import Seen, look
from activities.git.worktrees import Worktree
from activities.redaction.redacted import redacted
from workflows.model.errors import RefusedError

NONE: Mapping[str, str] = MappingProxyType({})
SUBJECT, BODY = 72, 2000
"""Limits of a commit's message, in characters."""


def commit_all(
    worktree: Worktree, job_id: str, summary: str, seen: Seen | None = None, trailers: Mapping[str, str] = NONE
) -> str | None:
    """Commit all but ignored files on the job's branch, and return its head; None if the job changed nothing.

    The agent's own commits stay. Call this after the run has ended. Repositories that the agent made inside the work
    folder are left out, because a commit cannot hold them.
    """
    seen = seen or look(worktree)
    if seen.refused is not None:
        raise seen.refused
    head = _committed(worktree, seen, message(summary or job_id, {"Job": job_id, **trailers}))
    _bring_home(worktree, seen, head)
    return None if head == worktree.base else head


def message(summary: str, trailers: Mapping[str, str]) -> str:
    """Build a commit message: a subject from the summary, the whole summary below it if it is longer, and trailers
    (ruling I1).
    """
    text = " ".join(redacted(summary).split())
    subject = text if len(text) <= SUBJECT else f"{text[: SUBJECT - 1].rpartition(' ')[0] or text[: SUBJECT - 1]}…"
    body = [] if subject == text else ["\n".join(wrap(text[:BODY], SUBJECT))]
    told = (f"{name}: {' '.join(redacted(value).split())}" for name, value in trailers.items() if value)
    return "\n\n".join([subject, *body, "\n".join(told)]) + "\n"


def _committed(worktree: Worktree, seen: Seen, said: str) -> str:
    with faults_said(worktree.path):
        repository = opened(side_of(worktree.path))
        try:
            pygit2 = library()
            before = repository.revparse_single(seen.head).peel(pygit2.Commit)
            merging = [each for each in seen.merging if not branches.holds_all(repository, seen.head, each)]
            if str(before.tree_id) == seen.tree and not merging:
                return seen.head
            parents, who = [before.id, *(pygit2.Oid(hex=each) for each in merging)], signature()
            text = said.encode("utf-8", "replace").decode()
            return str(repository.create_commit(None, who, who, text, pygit2.Oid(hex=seen.tree), parents))
        finally:
            let_go(repository)


def _bring_home(worktree: Worktree, seen: Seen, head: str) -> None:
    """Move the branch in the registered repository to the head, unless commits would get lost there or in the work
    folder.
    """
    if worktree.branch is None:
        return
    common, side = seen.common, side_of(worktree.path)
    if own_side.joined(worktree.path) is None:
        own_side.keep_joined(worktree.path, branches.joined(side, common, head, worktree.base))
    tip = branches.tip(common, worktree.branch) or worktree.base
    for each in {tip, seen.own} - {head}:
        if not branches.contains(side, head, each):
            where = printable(str(worktree.path))
            raise RefusedError(
                f"the job left {where} at {head}, which does not contain its branch {worktree.branch}",
                f"git -C {where} log --oneline --graph HEAD {worktree.branch}",
            )
    hand_over(side, common, head)
    clear_ref_lock(common, worktree.branch)
    old = branches.tip(common, worktree.branch)
    if head != old and not branches.move(common, worktree.branch, head, old, "service: the work of a job"):
        raise RefusedError(f"{worktree.branch} is being changed by somebody else", f"git log {worktree.branch}")
