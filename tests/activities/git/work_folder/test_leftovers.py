"""Sweeping lists leftovers first, and never removes a unique commit or file."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from activities.git.work_folder import delete_later
from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.leftovers import Ground, Leftover, LeftoverKind, leftovers, remove
from activities.git.work_folder.worktrees import BRANCHES_LOCK, add_branch, add_detached, dispose, find
from tests.activities.git.conftest import commit_file, run_git

pytestmark = pytest.mark.ruling("I1", "I2")
LONG_AGO = time.time() - 3600


@pytest.fixture
def ground(repo: Path, trees: Path) -> Ground:
    return Ground(repo, trees, "shop+", lambda name: "busy" in name)


def listed(ground: Ground) -> dict[str, str]:
    """Return the names of leftovers, and why each stays."""
    return {Path(left.name).name: left.keep for left in leftovers(ground)}


def swept(ground: Ground) -> list[Leftover]:
    return [remove(ground, left) for left in leftovers(ground)]


def test_nothing_was_left(ground: Ground) -> None:
    assert leftovers(ground) == []


def test_a_worktree_with_nothing_in_it_goes_and_a_merged_branch(repo: Path, trees: Path, ground: Ground) -> None:
    add_detached(repo, trees / "shop+job-a-1", "main")
    add_branch(repo, trees / "shop+job-b-1", "service/job-b", "main")
    (trees / "shop+job-b-1/debug.log").write_text("ignored")
    assert listed(ground) == {"shop+job-a-1": "", "shop+job-b-1": "", "job-b": ""}
    assert len(os.listdir(trees)) == 2, "listing removes nothing"
    assert [left.keep for left in swept(ground)] == ["", "", ""]
    assert os.listdir(trees) == []
    assert run_git(repo, "branch", "--list", "service/*") == ""
    assert leftovers(ground) == []


def test_work_that_is_nowhere_else_stays(repo: Path, trees: Path, ground: Ground) -> None:
    dirty = add_branch(repo, trees / "shop+dirty", "service/job-dirty", "main")
    (dirty.path / "new.txt").write_text("x")
    lost = add_detached(repo, trees / "shop+lost", "main")
    only = commit_file(lost.path, "own.txt", "x")
    unmerged = add_branch(repo, trees / "shop+done", "service/job-unmerged", "main")
    (unmerged.path / "done.txt").write_text("x")
    head = commit_all(unmerged, "job-a", "x") or ""
    nested = add_branch(repo, trees / "shop+nested", "service/job-nested", "main")
    run_git(nested.path, "init", "-q", "inner")
    commit_file(nested.path / "inner", "x", "x")
    broken = add_detached(repo, trees / "shop+broken", "main")
    (broken.path / "x").write_text("x")
    shutil.rmtree(trees.parent / "checkouts/shop+broken.git")
    swept(ground)
    assert listed(ground) == {
        "shop+broken": "it cannot be read as a worktree of the repository: look into it, then delete it",
        "shop+dirty": "1 uncommitted files",
        "shop+lost": f"commits on no branch: git -C {lost.path} branch NAME {only}",
        "shop+nested": "1 uncommitted files",
        "job-dirty": f"checked out in {dirty.path}",
        "job-nested": f"checked out in {nested.path}",
        "job-unmerged": "1 unmerged commit",
    }
    assert (dirty.path / "new.txt").exists()
    assert run_git(repo, "rev-parse", "service/job-unmerged") == head
    run_git(repo, "branch", "service/task-1", head)  # merged into the task's branch
    swept(ground)
    assert run_git(repo, "branch", "--list", "service/job-unmerged") == ""
    assert run_git(repo, "rev-parse", "service/task-1") == head


def test_what_a_job_owns_is_not_even_listed(repo: Path, trees: Path, ground: Ground) -> None:
    add_branch(repo, trees / "shop+busy", "service/job-busy", "main")
    add_detached(repo, trees / "other+job", "main")
    run_git(repo, "branch", "service-of-people")
    assert leftovers(ground) == []


def test_a_job_that_began_after_the_listing_keeps_its_worktree(repo: Path, trees: Path) -> None:
    names: set[str] = set()
    ground = Ground(repo, trees, "shop+", names.__contains__)
    worktree = add_branch(repo, trees / "shop+a", "service/job-a", "main")
    rest = leftovers(ground)
    names |= {"shop+a", "service/job-a"}
    assert [remove(ground, left).keep for left in rest] == [
        "a job works there now",
        f"checked out in {worktree.path}",
    ]
    assert find(worktree.path) == worktree


def test_a_branch_that_moved_after_the_listing_stays(repo: Path, trees: Path, ground: Ground) -> None:
    run_git(repo, "branch", "service/job-a", "main")
    (leftover,) = leftovers(ground)
    worktree = add_branch(repo, trees / "w", "service/job-a", "main")
    (worktree.path / "x").write_text("x")
    head = commit_all(worktree, "job-a", "x")
    dispose(repo, worktree.path)
    assert "could not be removed" in remove(ground, leftover).keep
    assert run_git(repo, "rev-parse", "service/job-a") == head


def test_a_folder_that_was_never_finished_goes_and_one_whose_record_is_broken_stays(
    repo: Path, trees: Path, ground: Ground
) -> None:
    for name in ("shop+half", "shop+broken"):
        add_detached(repo, trees / name, "main")
        (trees.parent / f"checkouts/{name}.git/place.json").write_text("{")
    shutil.rmtree(trees / "shop+half/.git")
    why = "it cannot be read as a worktree of the repository: look into it, then delete it"
    assert listed(ground) == {"shop+broken": why, "shop+half": ""}


@pytest.mark.ruling("N3")
def test_what_an_agent_put_in_place_of_its_folder_is_not_followed(
    repo: Path, trees: Path, ground: Ground, tmp_path: Path
) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/x").touch()
    for name in ("shop+link", "shop+pipe"):
        shutil.rmtree(add_detached(repo, trees / name, "main").path)
    (trees / "shop+link").symlink_to(tmp_path / "precious")
    os.mkfifo(trees / "shop+pipe")
    assert [left.keep for left in swept(ground)] == ["", ""]
    assert os.listdir(trees) == []
    assert (tmp_path / "precious/x").exists()


def test_gone_without_a_word_and_put_away_but_not_deleted(repo: Path, trees: Path, ground: Ground) -> None:
    shutil.rmtree(add_detached(repo, trees / "shop+gone", "main").path)
    trash = trees.parent / delete_later.FOLDER
    left = delete_later.put_away(trash, add_detached(repo, trees / "shop+half", "main").path)
    others = delete_later.put_away(trash, add_detached(repo, trees / "else+where", "main").path)
    assert listed(ground) == {"shop+gone": "", "shop+half": "", left.name: ""}
    swept(ground)
    assert os.listdir(trees) == []
    assert os.listdir(trees.parent / "checkouts") == ["else+where.git"]
    assert list((trees.parent / delete_later.FOLDER).iterdir()) == [others]


def test_locks(repo: Path, trees: Path, ground: Ground) -> None:
    worktree = add_detached(repo, trees / "shop+dirty", "main")
    (worktree.path / "x").write_text("x")
    git_folder, sides = repo / ".git", trees.parent / "checkouts"
    old, fresh = sides / "shop+dirty.lock", git_folder / "refs/heads/service/job-b.lock"
    branch, own = git_folder / "refs/heads/service/job-a.lock", git_folder / "index.lock"
    branch.parent.mkdir()
    for lock in (old, fresh, branch, own, sides / BRANCHES_LOCK):
        lock.touch()
    os.utime(branch, (LONG_AGO, LONG_AGO))
    holder = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", holder, sides / BRANCHES_LOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert {left.name: left.keep for left in leftovers(ground) if left.kind is LeftoverKind.LOCK} == {
            str(old): "",
            str(branch): "",
            str(fresh): "git may be at work: look again in ten minutes",
            str(sides / BRANCHES_LOCK): "held at this moment",
            str(own): "it is the checkout's own: when no git runs there, rm it",
        }
        process.kill()
    swept(ground)
    assert [lock.exists() for lock in (old, branch, fresh, own, sides / BRANCHES_LOCK)] == [0, 0, 1, 1, 0]
