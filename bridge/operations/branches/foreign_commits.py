"""Foreign commits on a tree's branches: a branch with one is neither merged nor published (ruling O1)."""

import shlex
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from activities.git import branches as git
from activities.git.command import printable
from activities.store import attempts
from activities.store import trees as stored_trees
from activities.store.attempts import AttemptRow
from bridge.operations.branches.branches import Branches, LegBranch
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from workflows.model.errors import Commands, RefusedError

MOST_NAMED = 5
SHORT, LONGEST_SUBJECT = 7, 72


class ForeignCommitsError(RefusedError):
    """A branch holds commits that belong neither to the base, nor to the tree, nor to the task's branch."""

    code = "foreign_commits"


def refuse_foreign(service: Service, tree: Branches, leg: LegBranch, but: str) -> None:
    """Raise if a leg's branch has foreign commits, and name them; trees of earlier releases are not checked."""
    commits = _foreign(service, tree, leg.head_sha) if tree.base and leg.head_sha else ()
    if not commits:
        return
    told = git.subjects(Path(tree.path), commits[:MOST_NAMED])
    named = ", ".join(f"{each[:SHORT]} {printable(subject[:LONGEST_SUBJECT])}" for each, subject in told)
    more = f" and {len(commits) - MOST_NAMED} more" if len(commits) > MOST_NAMED else ""
    holds = "a commit that is" if len(commits) == 1 else f"{len(commits)} commits that are"
    message = f"{leg.branch} of leg {leg.leg} ({leg.job_id}) holds {holds} not of this tree: {named}{more}{but}"
    raise ForeignCommitsError(message, Commands(*_without(service, tree, leg), *_with(tree, leg)))


def _without(service: Service, tree: Branches, leg: LegBranch) -> list[str]:
    """Return the commands that reset the branch to the job's own commit; none if that commit has foreign ancestors
    itself.
    """
    whole = jobs.tree(service, leg.job_id).jobs  # later jobs may have continued on the branch
    heads = [job.head_sha for job in whole if job.branch == leg.branch and job.head_sha]
    left = heads[-1] if heads else None
    if left is None or left == leg.head_sha or _foreign(service, tree, left):
        return []
    where = git.checkout_of(Path(tree.path), leg.branch)
    first = [f"git -C {shlex.quote(str(where))} checkout --detach"] if where else []
    return [*first, f"git -C {shlex.quote(tree.path)} branch -f {leg.branch} {left}   # leaves them out"]


def _with(tree: Branches, leg: LegBranch) -> list[str]:
    """Return the commands that merge foreign commits into the task's branch, where they count as a person's."""
    repo, work = f"git -C {shlex.quote(tree.path)}", leg.branch if leg.exists else leg.head_sha
    if tree.head is None:
        return [f"{repo} branch {tree.task_branch} {work}   # takes them in"]
    merge = f"merge --no-ff --no-edit {work}   # takes them in"
    if where := git.checkout_of(Path(tree.path), tree.task_branch):
        return [f"git -C {shlex.quote(str(where))} {merge}"]
    place = shlex.quote(f"{tree.path}-{tree.task_branch.removeprefix('service/')}")
    return [
        f"{repo} worktree add {place} {tree.task_branch}",
        f"git -C {place} {merge}",
        f"{repo} worktree remove {place}",
    ]


def _foreign(service: Service, tree: Branches, head: str) -> tuple[str, ...]:
    """Return the commits of a head that are not the base's, the tree's or the task branch's, newest first."""
    rows = attempts.of_tree(service.store, tree.root_job_id)
    start = stored_trees.get(service.store, tree.root_job_id)
    of_run = len(start.start.branch_deps) if start else 0
    given = {commit for row in rows for commit in (row.given or ())[:of_run]}
    given |= {each.head for each in start.start.line} if start else set()
    repo, hidden = Path(tree.path), frozenset({tree.base, *given, *([tree.head] if tree.head else [])})
    own = {commit for row in rows for commit in _own(repo, row, rows)} | _merged(repo, rows, hidden)
    return tuple(each for each in _reached(repo, head, hidden) if each not in own)


def _merged(repo: Path, rows: Sequence[AttemptRow], hidden: frozenset[str]) -> set[str]:
    """Return the merge commits that the service made as bases of later jobs, or for them to merge (rulings O2, O4).

    They lie above the work that a line was made of; work that was built on the line later hides none of them.
    """
    heads = {head for row in rows if (head := _head(row)) and head != row.base_sha}
    found = set[str]()
    lines = {line for row in rows for line in (row.base_sha, *(row.diagnostics or {}).get("lines", ())) if line}
    for line in lines - hidden:
        parts = heads.intersection(_reached(repo, line, hidden))
        found.update(_reached(repo, line, hidden | parts))
    return found


def _own(repo: Path, row: AttemptRow, rows: Sequence[AttemptRow]) -> tuple[str, ...]:
    """Return the commits an attempt added: its own, and the merges made on its branch before it began."""
    head, known = _head(row), row.diagnostics or {}
    if row.ended_at is None and row.branch:
        head = git.tip(repo, row.branch)
    if not head or not row.base_sha:
        return ()
    start = known.get("start_sha", row.base_sha)
    own = _reached(repo, head, frozenset({start, row.base_sha, *(row.given or ()), *known.get("joined", ())}))
    there = [each for each in rows if each.branch == row.branch]
    merged = frozenset(commit for each in there for commit in (each.base_sha, *(each.given or ())) if commit)
    return (*own, *_merges_on_top(repo, start, merged))


def _head(row: AttemptRow) -> str | None:
    return (row.outcome or {}).get("head_sha")


def _reached(repo: Path, head: str, hidden: frozenset[str]) -> tuple[str, ...]:
    """Return the commits of a head that the hidden ones lack, from a cache; empty while the head is missing."""
    try:
        return _walked(repo, head, hidden)
    except LookupError:
        return ()


@lru_cache(maxsize=1024)
def _walked(repo: Path, head: str, hidden: frozenset[str]) -> tuple[str, ...]:
    found = git.reached(repo, head, hidden)
    if not found and git.commit(repo, head) is None:
        raise LookupError(head)  # it may be fetched later, so nothing is cached
    return found


@lru_cache(maxsize=1024)
def _merges_on_top(repo: Path, head: str, merged: frozenset[str]) -> tuple[str, ...]:
    return git.merges_on_top(repo, head, merged)
