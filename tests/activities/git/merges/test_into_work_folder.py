"""Merges of legs for their dependents."""

from pathlib import Path

import pytest

from activities.git.merges.into_work_folder import MergeConflict, merge
from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.worktrees import add_branch, add_detached, dispose, find
from tests.activities.git.conftest import commit_file, run_git
from workflows.model.errors import NotFoundError

pytestmark = pytest.mark.ruling("I1", "I2")


def made(repo: Path, trees: Path, leg: str, name: str, content: str) -> None:
    """Make a leg that has ended: a branch with one commit, and no work folder."""
    worktree = add_branch(repo, trees / leg, leg, "main")
    (worktree.path / name).write_text(content)
    commit_all(worktree, "job-a", leg)
    dispose(repo, worktree.path)


@pytest.fixture
def legs(repo: Path, trees: Path) -> Path:
    """Make four legs: one and two are independent, three conflicts with one, four with the base's readme."""
    for leg, name, content in (("one", "1.txt", "1"), ("two", "2.txt", "2"), ("three", "1.txt", "3")):
        made(repo, trees, leg, name, content)
    made(repo, trees, "four", "readme.md", "four's\n")
    commit_file(repo, "readme.md", "main's\n")
    return repo


def test_branches_are_merged_in_order_and_are_the_new_base(legs: Path, trees: Path) -> None:
    worktree = merge(add_detached(legs, trees / "w", "main"), ("one", "two"))
    assert (worktree.path / "1.txt").read_text() + (worktree.path / "2.txt").read_text() == "12"
    assert worktree.base == run_git(worktree.path, "rev-parse", "HEAD")
    assert find(worktree.path) == worktree
    assert run_git(worktree.path, "log", "-1", "--format=%s|%an") == "Merge two|Delegation Service"
    assert run_git(legs, "log", "-1", "--format=%s", "one") == "one"


def test_into_a_branch_worktree_the_branch_moves(legs: Path, trees: Path) -> None:
    worktree = merge(add_branch(legs, trees / "w", "dependent", "main"), ("one",))
    assert run_git(legs, "rev-parse", "dependent") == worktree.base


def test_a_conflict_names_both_legs_and_the_files_and_cleans_up(legs: Path, trees: Path) -> None:
    worktree = add_detached(legs, trees / "w", "main")
    with pytest.raises(MergeConflict) as caught:
        merge(worktree, ("two", "one", "three"))
    assert (caught.value.branch, caught.value.against, caught.value.files) == ("three", ("one",), ("1.txt",))
    assert "merging three conflicts with one in 1.txt" in str(caught.value)
    assert run_git(worktree.path, "status", "--porcelain") == ""


def test_a_conflict_with_the_base_says_so(legs: Path, trees: Path) -> None:
    with pytest.raises(MergeConflict, match=r"four conflicts with the base in readme\.md"):
        merge(add_detached(legs, trees / "w", "main"), ("one", "four"))


def test_merging_again_leaves_the_job_that_runs_there_alone(legs: Path, trees: Path) -> None:
    worktree = merge(add_branch(legs, trees / "w", "dependent", "main"), ("one",))
    (worktree.path / "readme.md").write_text("the agent is at work")
    commit_file(worktree.path, "x", "the agent's own")
    assert merge(worktree, ("one",)) == worktree
    assert find(worktree.path) == worktree


def test_a_killed_merge_is_taken_up_again(legs: Path, trees: Path) -> None:
    worktree = add_detached(legs, trees / "w", "main")
    (worktree.path / "2.txt").write_text("half writ")
    (worktree.path / "src/a.py").unlink()
    (trees.parent / "checkouts/w.git/index.lock").touch()
    (legs / ".git/refs/heads/leg.lock").touch()
    done = merge(worktree, ("one", "two"))
    assert (done.path / "2.txt").read_text() == "2"
    assert run_git(done.path, "status", "--porcelain") == ""


def test_a_merge_whose_record_was_lost_is_recorded_again(legs: Path, trees: Path) -> None:
    worktree = add_detached(legs, trees / "w", "main")
    record = trees.parent / "checkouts/w.git/place.json"
    before = record.read_text()
    merge(worktree, ("one", "two"))
    record.write_text(before)
    again = merge(worktree, ("one", "two"))
    assert again.base == run_git(worktree.path, "rev-parse", "HEAD") != worktree.base


def test_a_missing_branch_is_named_before_anything_is_merged(legs: Path, trees: Path) -> None:
    worktree = add_detached(legs, trees / "w", "main")
    with pytest.raises(NotFoundError, match="no commit nope"):
        merge(worktree, ("one", "nope"))
    assert run_git(worktree.path, "rev-parse", "HEAD") == worktree.base
