"""What a job really touched (ruling I4; spec: result observation)."""

from activities.git.command import all_printable, git, paths
from activities.git.untracked import untracked
from activities.git.worktrees import Worktree
from workflows.policy.observation import Touched

MAX_FILES = 2000

_DIFF = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", "-z")


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
