"""What a job changed in its worktree: files nobody told git of, files it touched, the text of it (ruling I4).

Ignored files are never part of it.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from activities.git.command import all_printable, git, git_capped, line, paths
from activities.git.worktrees import Worktree
from workflows.policy.observation import Touched

FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
MAX_FILES = 2000
MAX_BYTES = 256_000

_DIFF = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", "-z")


@dataclass(frozen=True)
class Diff:
    """A diff as evidence, or its beginning: never longer than is good to keep."""

    text: str
    cut: bool


def untracked(path: Path) -> tuple[str, ...]:
    """Untracked files. A repository somebody made inside the worktree is one name that ends with a slash."""
    return paths(git(path, "ls-files", "--others", "--exclude-standard", "-z"))


def addable(path: Path) -> bytes:
    """Pathspecs for `git add`: everything but repositories made inside, which a commit cannot hold."""
    nested = [name.rstrip("/") for name in untracked(path) if name.endswith("/")]
    specs = [".", *(f":(exclude,literal){name}" for name in nested)]
    return "\0".join(specs).encode("utf-8", "surrogateescape")


def touched_files(worktree: Worktree, limit: int = MAX_FILES) -> Touched:
    """The working-tree diff against HEAD plus untracked files, as the spec says, plus what the agent committed itself.

    Without rename detection a rename is a deletion and an addition: both paths count. Ignored files never do. Call it
    before the service commits.
    """
    names = {
        *paths(git(worktree.path, *_DIFF, "HEAD")),
        *paths(git(worktree.path, *_DIFF, worktree.base, "HEAD")),
        *(name.rstrip("/") for name in untracked(worktree.path)),
    }
    files = all_printable(names)
    return Touched(files=files[:limit], complete=len(files) <= limit)


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
