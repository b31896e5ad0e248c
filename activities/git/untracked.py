"""What lies in a worktree without git knowing it. Ignored files are never part of it (ruling I4)."""

from pathlib import Path

from activities.git.command import git, paths

FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


def untracked(path: Path) -> tuple[str, ...]:
    """Untracked files. A repository somebody made inside the worktree is one name that ends with a slash."""
    return paths(git(path, "ls-files", "--others", "--exclude-standard", "-z"))


def addable(path: Path) -> bytes:
    """Pathspecs for `git add`: everything but repositories made inside, which a commit cannot hold."""
    nested = [name.rstrip("/") for name in untracked(path) if name.endswith("/")]
    specs = [".", *(f":(exclude,literal){name}" for name in nested)]
    return "\0".join(specs).encode("utf-8", "surrogateescape")
