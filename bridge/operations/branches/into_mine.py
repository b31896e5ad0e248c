"""Merging a task's branch into the operator's branch: the checked-out branch, or without a checkout the default branch
(ruling O6).
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from activities.git import command, git_branches, hub
from activities.git.hub import Hub, HubRefusesError
from activities.git.merges.commits import CommitConflict, commit_merge, merged_tree
from activities.git.merges.task_branch import TRIES
from activities.git.registered_repository import git_directory
from activities.host import checkouts
from activities.store.registry.repo_rows import Repo
from bridge.operations.branches import merge_offer
from bridge.operations.branches.branches import Branches
from bridge.operations.branches.merge_offer import OmittedLeg
from bridge.operations.service import Service
from workflows.model.errors import Commands, RefusedError, UsageError
from workflows.text.plurals import quantity


@dataclass(frozen=True)
class OwnBranch:
    """The operator's own branch, which gets all of a tree's work except the parts in `without`."""

    repo: Path
    order: str
    without: tuple[str, ...]

    def refuse_missing(self, root: str, missing: Sequence[OmittedLeg]) -> None:
        """Raise if the merge would leave out a part that is neither named in `without` nor in the operator's branch
        already.
        """
        out = merge_offer.not_in_head(self.repo, missing)
        named = {name for part in out for name in (part.leg, part.job_id)}
        if unknown := [name for name in self.without if name not in named]:
            raise UsageError(
                f"{unknown[0]} is not left out; nothing was merged: `--without` names parts that a merge leaves out",
                f"service job branches {root}",
            )
        unnamed = [part for part in out if not {part.leg, part.job_id} & set(self.without)]
        if unnamed:
            ways = dict.fromkeys(part.commands[0] for part in unnamed)
            raise RefusedError(
                f"{'; '.join(part.says for part in unnamed)}; nothing was merged",
                Commands(*ways, f"{self.order}{merge_offer.without(unnamed)}"),
            )


def is_bare(path: Path) -> bool:
    return not (path / ".git").exists()


def refuse_unfit(path: Path, again: str) -> None:
    """Raise before any merge is made if the checkout can't take one: it is missing, mid-merge, detached or changed."""
    where = shlex.quote(str(path))
    if is_bare(path):
        raise RefusedError(
            f"{path} is bare: no branch is checked out there; nothing was merged", again.removesuffix(" --into-mine")
        )
    if (git_directory(path) / "MERGE_HEAD").exists():
        ends = f"git -C {where} merge --abort   # or, once it is resolved: git -C {where} merge --continue"
        raise RefusedError(f"{path} is in the middle of a merge; nothing was merged", Commands(ends, again))
    if not (git_directory(path) / "HEAD").read_text().startswith("ref: "):
        named = f"git -C {where} switch -c NAME   # or to a branch that you have"
        raise RefusedError(f"{path} has no branch checked out; nothing was merged", Commands(named, again))
    if changed := command.git(path, "status", "--porcelain", "--untracked-files=no").splitlines():
        raise RefusedError(
            f"{path} has {quantity(len(changed), 'uncommitted change')}; nothing was merged",
            Commands(f"git -C {where} stash", again, f"git -C {where} stash pop"),
        )


def into_checkout(path: Path, tree: Branches, again: str) -> str:
    """Merge the task's branch into the checked-out branch with the operator's git; return a sentence on the outcome.

    A conflict leaves the checkout as it was.
    """
    before, where = command.line(path, "rev-parse", "HEAD"), shlex.quote(str(path))
    try:
        command.in_operators_checkout(path, "merge", "--no-edit", tree.task_branch)
    except command.GitError as error:
        files = command.all_printable(command.paths(command.git(path, "diff", "--name-only", "--diff-filter=U", "-z")))
        if (git_directory(path) / "MERGE_HEAD").exists():
            command.in_operators_checkout(path, "merge", "--abort")
        stash = f"git -C {where} stash --include-untracked   # keeps your own files for later"
        by_hand = f"git -C {where} merge {tree.task_branch}   # resolve the files it names, then: git commit"
        why = f"it conflicts in {', '.join(files)}" if files else str(error)
        raise RefusedError(
            f"{tree.task_branch} has the work, and is not merged into {path}: {why}; the checkout is as it was",
            Commands(*((f"service job resolve {tree.root_job_id} --with-mine", by_hand) if files else (stash, again))),
        ) from None
    after, theirs = command.line(path, "rev-parse", "HEAD"), command.line(path, "rev-parse", tree.task_branch)
    return "was there already" if after == before else "fast-forwarded" if after == theirs else "merged"


def into_default(service: Service, repo: Repo, tree: Branches) -> str:
    """Merge the task's branch into the default branch at the remote, without force; return a sentence on the outcome.

    If somebody else pushed first, the merge is made again on top of their commits.
    """
    path, peoples = Path(repo.path), Hub(repo.remote, "refs/heads/")
    for _ in range(TRIES):
        checkouts.fresh(service, repo)
        base, theirs = git_branches.tip(path, repo.default_branch) or "", git_branches.tip(path, tree.task_branch) or ""
        if git_branches.contains(path, base, theirs):
            return "was there already"
        head = theirs if git_branches.contains(path, theirs, base) else _on_default(path, tree, base, theirs)
        try:
            if hub.push(path, peoples, head, repo.default_branch, expected=base):
                checkouts.fresh(service, repo)
                return "fast-forwarded" if head == theirs else "merged"
        except HubRefusesError as refused:
            why = f"{tree.task_branch} has the work, and is not merged into {tree.default}: {refused.message}"
            raise RefusedError(why, f"service job publish {tree.root_job_id}") from None
    raise RefusedError(f"{tree.default} is being changed by somebody else", "try again in a moment")


def _on_default(path: Path, tree: Branches, base: str, theirs: str) -> str:
    """Create the merge commit of the task's branch and the default branch."""
    made = merged_tree(path, base, theirs)
    if isinstance(made, CommitConflict):
        files = ", ".join(command.all_printable(made.files))
        raise RefusedError(
            f"{tree.task_branch} has the work, and is not merged into {tree.default}: it conflicts in {files}",
            Commands(f"service job resolve {tree.root_job_id} --with-mine", f"service job publish {tree.root_job_id}"),
        )
    return commit_merge(path, made, (base, theirs), f"Merge {tree.task_branch}")
