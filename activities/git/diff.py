"""The text of what a job changed, as evidence, never longer than is good to keep."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from activities.git.command import git, git_capped, line
from activities.git.untracked import FROM_STDIN, addable
from activities.git.worktrees import Worktree

MAX_BYTES = 256_000


@dataclass(frozen=True)
class Diff:
    """A diff, or its beginning."""

    text: str
    cut: bool


def capture_diff(worktree: Worktree, limit: int = MAX_BYTES) -> Diff:
    """Everything since the job's base, untracked files too. The worktree and its index stay as they are."""
    with TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        # With its time: to a copy that is newer, a file changed within a second of its checkout looks unchanged.
        shutil.copy2(line(worktree.path, "rev-parse", "--path-format=absolute", "--git-path", "index"), index)
        env = {"GIT_INDEX_FILE": str(index)}
        git(worktree.path, "add", "--intent-to-add", *FROM_STDIN, stdin=addable(worktree.path), env=env)
        options = ("--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--submodule=short")
        data, cut = git_capped(worktree.path, "diff", *options, worktree.base, limit=limit, env=env)
    return Diff(data.decode("utf-8", "replace"), cut)
