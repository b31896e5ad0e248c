"""Merges of legs into the branch of their task, without any checkout."""

from pathlib import Path

import pytest

from activities.git import git_branches
from activities.git.merges.task_branch import Contribution, TaskBranchConflict, merge_all
from tests.activities.git.conftest import commit_file, run_git
from workflows.model.errors import RefusedError

pytestmark = pytest.mark.ruling("I5")
TASK = "service/task-1"


def leg(repo: Path, name: str, path: str, content: str) -> Contribution:
    """Make a branch with one commit, as a leg leaves it."""
    run_git(repo, "checkout", "-q", "-b", f"service/{name}", "main")
    commit = commit_file(repo, path, content, name)
    run_git(repo, "checkout", "-q", "main")
    return Contribution(name, f"job-{name}", f"service/{name}", commit)


@pytest.fixture
def base(repo: Path) -> str:
    return run_git(repo, "rev-parse", "main")


def test_each_leg_becomes_a_merge_commit_that_names_its_job_and_no_checkout_changes(repo: Path, base: str) -> None:
    one, two = leg(repo, "one", "1.txt", "1"), leg(repo, "two", "2.txt", "2")
    (repo / "readme.md").write_text("somebody works here\n")
    run_git(repo, "add", "readme.md")
    before = run_git(repo, "status", "--porcelain=v2", "--branch")
    done = merge_all(repo, TASK, base, (one, two))
    assert done.fresh == (one, two)
    assert run_git(repo, "show", f"{TASK}:1.txt") + run_git(repo, "show", f"{TASK}:2.txt") == "12"
    log = run_git(repo, "log", "--first-parent", "--format=%an|%s|%(trailers:key=Job,separator=%x2C)", TASK)
    assert log.splitlines()[:2] == [
        "Delegation Service|Merge part two (service/two)|Job: job-two",
        "Delegation Service|Merge part one (service/one)|Job: job-one",
    ]
    assert run_git(repo, "status", "--porcelain=v2", "--branch") == before


def test_merging_again_moves_nothing(repo: Path, base: str) -> None:
    one = leg(repo, "one", "1.txt", "1")
    first = merge_all(repo, TASK, base, (one,))
    again = merge_all(repo, TASK, base, (one,))
    assert (again.head, again.fresh) == (first.head, ())


def test_a_conflict_names_leg_and_file_and_keeps_nothing_of_the_same_call(repo: Path, base: str) -> None:
    legs = [leg(repo, "one", "é.txt", "1"), leg(repo, "two", "é.txt", "2")]
    with pytest.raises(TaskBranchConflict) as caught:
        merge_all(repo, TASK, base, legs)
    assert (caught.value.clashing, caught.value.before, caught.value.files) == (legs[1], (legs[0],), ("é.txt",))
    assert git_branches.tip(repo, TASK) is None


def test_a_branch_that_is_checked_out_stays_as_it_is(repo: Path, base: str) -> None:
    one = leg(repo, "one", "1.txt", "1")
    run_git(repo, "checkout", "-q", "-b", TASK)
    with pytest.raises(RefusedError, match="is checked out in"):
        merge_all(repo, TASK, base, (one,))
    assert run_git(repo, "rev-parse", TASK) == base


def test_who_loses_a_race_starts_over_from_what_the_winner_left(
    repo: Path, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = leg(repo, "one", "1.txt", "1"), leg(repo, "two", "2.txt", "2")
    move = git_branches.move

    def beaten(*words: object) -> bool:
        monkeypatch.setattr(git_branches, "move", move)
        merge_all(repo, TASK, base, (two,))
        return move(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(git_branches, "move", beaten)
    merge_all(repo, TASK, base, (one,))
    assert run_git(repo, "ls-tree", "--name-only", TASK, "1.txt", "2.txt") == "1.txt\n2.txt"


def test_binary_files_and_names_of_any_bytes_are_counted_and_named(repo: Path, base: str) -> None:
    (repo / "b.bin").write_bytes(b"\0\1")
    (repo / "n\udcff.txt").write_text("x\n")
    run_git(repo, "add", "-A")
    run_git(repo, "commit", "-q", "-m", "odd")
    counts = {each.path: (each.added, each.removed) for each in git_branches.changes(repo, base, "main")}
    assert counts == {"b.bin": (None, None), "n\udcff.txt": (1, 0)}
