"""A kill before every single step: the next run repairs and goes on; nothing is lost, nothing done twice."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from activities.git.merges.into_work_folder import merge
from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.worktrees import Worktree, add_branch, add_detached, dispose
from tests.activities.git.conftest import commit_file, run_git

pytestmark = [pytest.mark.long, pytest.mark.ruling("I1", "I2")]
STEPS = {
    "subprocess.Popen",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "shutil.rmtree",
    "shutil.copyfile",
    "os.remove",
    "fcntl.flock",
}
"""Audit events of Python's own disk operations; libgit2 writes between two of them."""

MOST_STEPS = 200
Work = Callable[[], object]


def die_before(step: int) -> None:
    """Kill this process before its nth step."""
    taken = 0

    def hook(event: str, _: object) -> None:
        nonlocal taken
        if event in STEPS:
            taken += 1
            if taken == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def killed_at(step: int, work: Work) -> bool:
    """Do the work in a process that dies before its nth step. Return False if it was done by then."""
    if (child := os.fork()) == 0:
        status = 1
        try:
            die_before(step)
            work()
            status = 0
        finally:
            os._exit(status)
    _, end = os.waitpid(child, 0)
    assert end in (0, signal.SIGKILL), f"it failed: {end}"
    return end == signal.SIGKILL


def killed_everywhere(prepare: Work, work: Work) -> Iterator[int]:
    """For each step: prepare, be killed there, and yield, so that the caller goes on."""
    for step in range(1, MOST_STEPS):
        prepare()
        if not killed_at(step, work):
            assert step > 3, "nothing was ever killed"
            return
        yield step
    raise AssertionError("it never ends")


def nothing_left(repo: Path, trees: Path) -> None:
    assert run_git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert not trees.exists() or os.listdir(trees) == []
    assert os.listdir(trees.parent / "checkouts") == []
    assert not list((repo / ".git").glob("**/*.lock"))
    assert run_git(repo, "status", "--porcelain") == ""


@pytest.mark.parametrize("branch", ["leg", None])
def test_setting_up(repo: Path, trees: Path, branch: str | None) -> None:
    base = run_git(repo, "rev-parse", "HEAD")

    def add() -> Worktree:
        return add_branch(repo, trees / "w", branch, base) if branch else add_detached(repo, trees / "w", base)

    for _ in killed_everywhere(lambda: None, add):
        made = add()
        assert made == Worktree(trees / "w", base, branch)
        assert run_git(made.path, "status", "--porcelain") == ""
        dispose(repo, made.path)
        nothing_left(repo, trees)
        if branch:
            run_git(repo, "branch", "-D", branch)


def test_disposing(repo: Path, trees: Path) -> None:
    path = trees / "w"
    worktree = add_branch(repo, path, "leg", "main")
    (path / "work.txt").write_text("x")
    head = commit_all(worktree, "job-a", "x")
    for _ in killed_everywhere(lambda: add_branch(repo, path, "leg", "main"), lambda: dispose(repo, path)):
        dispose(repo, path)
        nothing_left(repo, trees)
        assert run_git(repo, "rev-parse", "leg") == head
    nothing_left(repo, trees)


def test_committing(repo: Path, trees: Path) -> None:
    worktree = add_branch(repo, trees / "w", "leg", "main")

    def prepare() -> None:
        run_git(repo, "update-ref", "refs/heads/leg", worktree.base)
        (worktree.path / "left.txt").unlink(missing_ok=True)
        run_git(worktree.path, "checkout", "-q", "-B", "leg", worktree.base)
        commit_file(worktree.path, "own.txt", "x", "by the agent")
        run_git(worktree.path, "checkout", "-q", "-B", "idea")  # the job's branch has to follow
        (worktree.path / "left.txt").write_text("x")

    for _ in killed_everywhere(prepare, lambda: commit_all(worktree, "job-a", "work")):
        head = commit_all(worktree, "job-a", "work")
        assert head == run_git(repo, "rev-parse", "leg")
        log = run_git(repo, "log", "--format=%s", f"{worktree.base}..leg")
        assert log.splitlines() == ["work", "by the agent"]
        assert run_git(repo, "fsck", "--strict") == ""


def test_merging(repo: Path, trees: Path) -> None:
    for name in ("a", "b"):
        leg = add_branch(repo, trees / name, name, "main")
        (leg.path / f"{name}.txt").write_text(name)
        commit_all(leg, "job-a", name)
        dispose(repo, leg.path)
    worktree = add_detached(repo, trees / "w", "main")

    def prepare() -> None:
        dispose(repo, worktree.path)
        assert add_detached(repo, trees / "w", "main") == worktree

    for _ in killed_everywhere(prepare, lambda: merge(worktree, ("a", "b"))):
        merged = merge(replace(worktree), ("a", "b"))
        assert {"a.txt", "b.txt"} <= set(os.listdir(worktree.path))
        assert run_git(worktree.path, "status", "--porcelain") == ""
        assert run_git(repo, "rev-list", "--count", f"{worktree.base}..{merged.base}") == "3"
        assert run_git(worktree.path, "rev-parse", "HEAD") == merged.base
    dispose(repo, worktree.path)
    nothing_left(repo, trees)
