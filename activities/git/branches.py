"""What a repository says of the branches that hold legs' work (rulings I1, I5). Nothing here touches a checkout."""

from dataclasses import dataclass
from pathlib import Path

from activities.git.command import GitError, git, line, paths, says_yes


@dataclass(frozen=True)
class Distance:
    """How many commits a branch has that another lacks, and the other way round."""

    ahead: int
    behind: int


@dataclass(frozen=True)
class FileChange:
    """A file of a diff. No counts: it is binary."""

    path: str
    added: int | None
    removed: int | None


def tip(repo: Path, branch: str) -> str | None:
    """The commit a branch points at; None when there is no such branch."""
    return commit(repo, f"refs/heads/{branch}")


def commit(repo: Path, revision: str) -> str | None:
    """The commit, as long as the repository still has it."""
    try:
        return line(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitError:
        return None


def contains(repo: Path, newer: str, older: str) -> bool:
    """Whether everything that is in `older` is in `newer`."""
    return says_yes(repo, "merge-base", "--is-ancestor", older, newer)


def distance(repo: Path, branch: str, other: str) -> Distance:
    """How far apart two commits are."""
    behind, ahead = line(repo, "rev-list", "--left-right", "--count", f"{other}...{branch}").split()
    return Distance(int(ahead), int(behind))


def checkout_of(repo: Path, branch: str) -> Path | None:
    """The worktree, the main one included, that has the branch checked out."""
    for record in git(repo, "worktree", "list", "--porcelain", "-z").split(b"\0\0"):
        fields = dict(field.decode("utf-8", "surrogateescape").partition(" ")[::2] for field in record.split(b"\0"))
        if fields.get("branch") == f"refs/heads/{branch}" and Path(fields["worktree"]).exists():
            return Path(fields["worktree"])
    return None


def move(repo: Path, branch: str, new: str, old: str | None, why: str) -> bool:
    """Point a branch at a commit, if it still is where it was; False when somebody else was faster."""
    try:
        git(repo, "update-ref", "-m", why, f"refs/heads/{branch}", new, old or "0" * len(new))
    except GitError:
        if tip(repo, branch) == old:
            raise
        return False
    return True


def delete(repo: Path, branch: str, old: str) -> None:
    """Remove a branch that is where we saw it."""
    git(repo, "update-ref", "-d", f"refs/heads/{branch}", old)


def changes(repo: Path, base: str, head: str) -> tuple[FileChange, ...]:
    """The files that differ, each with its lines added and removed; a rename is its two paths."""
    options = ("--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", "-z")
    listed = (entry.split("\t", 2) for entry in paths(git(repo, "diff", *options, base, head)))
    return tuple(
        FileChange(path, *(None if count == "-" else int(count) for count in counts)) for *counts, path in listed
    )
