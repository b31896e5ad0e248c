"""Files that a job touched, and its diff."""

import os
from pathlib import Path

import pytest

from activities.git.merges.into_work_folder import merge
from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.worktree_changes import capture_diff, touched_files
from activities.git.work_folder.worktrees import Worktree, add_branch, add_detached
from tests.activities.git.conftest import commit_file, make_repository, run_git

pytestmark = pytest.mark.ruling("I4", "spec:result.observation")


@pytest.fixture
def worktree(repo: Path, trees: Path) -> Worktree:
    return add_branch(repo, trees / "w", "leg", "main")


def test_nothing_touched(worktree: Worktree) -> None:
    (worktree.path / "debug.log").write_text("ignored")
    (worktree.path / "src/a.py").touch()  # a new time is no change
    assert touched_files(worktree).files == ()
    assert capture_diff(worktree).text == ""


def test_every_way_to_touch_a_file(worktree: Worktree) -> None:
    path = worktree.path
    commit_file(path, "committed.txt", "by the agent itself")
    (path / "src/a.py").write_text("changed")
    (path / "staged.txt").write_text("x")
    run_git(path, "add", "staged.txt")
    run_git(path, "mv", "readme.md", "docs.md")
    (path / "deep/er").mkdir(parents=True)
    (path / "deep/er/odd \t\n name").write_text("x")
    (path / "debug.log").write_text("ignored")
    (path / "build").mkdir()
    (path / "build/x").write_text("ignored")
    touched = touched_files(worktree)
    assert touched.complete
    assert touched.files == (
        "committed.txt", "deep/er/odd \t\n name", "docs.md", "readme.md", "src/a.py", "staged.txt",
    )  # fmt: skip


def test_what_was_committed_and_undone_in_the_tree_counts_as_the_spec_says(worktree: Worktree) -> None:
    commit_file(worktree.path, "src/a.py", "changed")
    (worktree.path / "src/a.py").write_text("a\n")
    assert touched_files(worktree).files == ("src/a.py",)  # it differs from HEAD


def test_a_file_ignored_but_tracked_counts(worktree: Worktree) -> None:
    (worktree.path / "kept.log").write_text("1")
    run_git(worktree.path, "add", "-f", "kept.log")
    assert touched_files(worktree).files == ("kept.log",)


def test_a_name_that_is_no_utf8_is_fit_for_a_record(worktree: Worktree) -> None:
    (worktree.path / b"caf\xe9".decode("utf-8", "surrogateescape")).write_text("x")
    assert touched_files(worktree).files == (r"caf\xe9",)
    assert touched_files(worktree).model_dump_json()


def test_a_file_with_control_characters_in_its_name_that_was_there_is_not_touched(tmp_path: Path, trees: Path) -> None:
    repo = make_repository(tmp_path / "repo", **{"bell\a\n": "x"})
    worktree = add_branch(repo, trees / "w", "leg", "main")
    os.utime(worktree.path / "bell\a\n", (1, 1))
    assert touched_files(worktree).files == ()
    (worktree.path / "bell\a\n").write_text("y")
    assert touched_files(worktree).files == ("bell\a\n",)


def test_too_many_files_are_incomplete(worktree: Worktree) -> None:
    for number in range(4):
        (worktree.path / f"{number}.txt").write_text("x")
    assert touched_files(worktree, 4).complete
    assert touched_files(worktree, 3).model_dump() == {"files": ("0.txt", "1.txt", "2.txt"), "complete": False}


def test_the_merged_work_of_others_does_not_count(repo: Path, worktree: Worktree, trees: Path) -> None:
    (worktree.path / "theirs.txt").write_text("x")
    commit_all(worktree, "job-b", "x")
    dependent = merge(add_detached(repo, trees / "d", "main"), ("leg",))
    (dependent.path / "mine.txt").write_text("x")
    assert touched_files(dependent).files == ("mine.txt",)
    assert "theirs" not in capture_diff(dependent).text


def test_a_dirty_submodule_is_seen(tmp_path: Path, trees: Path) -> None:
    module = make_repository(tmp_path / "module")
    repo = make_repository(tmp_path / "super")
    run_git(repo, "submodule", "add", "-q", str(module), "lib")
    run_git(repo, "commit", "-q", "-m", "with a submodule")
    worktree = add_branch(repo, trees / "w", "leg", "main")
    (worktree.path / "lib/readme.md").write_text("dirty")
    assert touched_files(worktree).files == ("lib",)
    assert commit_all(worktree, "job-a", "x") is None


def test_the_diff_shows_everything_since_the_base_and_changes_nothing(worktree: Worktree) -> None:
    commit_file(worktree.path, "committed.txt", "line of the agent\n")
    (worktree.path / "new.txt").write_text("line of a new file\n")
    (worktree.path / "blob").write_bytes(bytes(range(256)))
    run_git(worktree.path, "config", "diff.external", "false")
    before = run_git(worktree.path, "status", "--porcelain=v2")
    diff = capture_diff(worktree)
    assert not diff.cut
    assert {"+line of the agent", "+line of a new file", "Binary files /dev/null and b/blob differ"} <= set(
        diff.text.splitlines()
    )
    assert run_git(worktree.path, "status", "--porcelain=v2") == before


def test_a_huge_diff_is_cut(worktree: Worktree) -> None:
    (worktree.path / "huge.txt").write_text("0123456789\n" * 500_000)
    diff = capture_diff(worktree, 10_000)
    assert diff.cut
    assert len(diff.text.encode()) == 10_000


def test_an_agent_without_any_file_left(tmp_path: Path, trees: Path) -> None:
    run_git(tmp_path, "init", "-q", "-b", "main", "bare-bones")
    run_git(tmp_path / "bare-bones", "commit", "-q", "--allow-empty", "-m", "start")
    worktree = add_branch(tmp_path / "bare-bones", trees / "w", "leg", "main")
    assert touched_files(worktree).files == ()
    assert capture_diff(worktree).text == ""
    assert commit_all(worktree, "job-a", "x") is None
