"""Submodules in a new worktree: filled from what the repository has, never from the network."""

import contextlib
from pathlib import Path

from activities.git.command import GitError, git, paths


def fill_submodules(worktree: Path, common: Path) -> None:
    """Check out the submodules the repository holds a copy of; the others stay empty."""
    if not (worktree / ".gitmodules").is_file():
        return
    for name, path in _declared(worktree):
        copy = common / "modules" / name
        if ".." not in Path(name).parts and copy.is_dir():
            local = ("-c", f"submodule.{name}.url={copy}", "-c", "protocol.file.allow=always")
            checkout = ("submodule", "--quiet", "update", "--checkout", "--no-recommend-shallow", "--", path)
            # not initialised, or its commit is not there: an empty folder, as git itself leaves it
            with contextlib.suppress(GitError):
                git(worktree, *local, *checkout)


def _declared(worktree: Path) -> list[tuple[str, str]]:
    try:
        listing = git(worktree, "config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    except GitError:
        return []
    pairs = (entry.partition("\n") for entry in paths(listing))
    return [(key.removeprefix("submodule.").removesuffix(".path"), path) for key, _, path in pairs]
