"""Checks of who has looked at a head, with real commits (ruling L10)."""

from pathlib import Path

import pytest

from activities.git.command import GitError
from activities.git.merges.task_branch import Contribution, merge_all
from activities.git.reviewed_commits import holds, saw_all
from tests.activities.git.conftest import commit_file, run_git

pytestmark = pytest.mark.ruling("L10")


def head_of(repo: Path, revision: str = "HEAD") -> str:
    return run_git(repo, "rev-parse", revision)


def branch(repo: Path, name: str, base: str, **files: str) -> str:
    """Make a branch with one commit on a base. Return the commit."""
    run_git(repo, "checkout", "-q", "-b", name, base)
    for file, content in files.items():
        commit_file(repo, file.replace("_", "."), content)
    return head_of(repo)


def two_legs(repo: Path) -> tuple[str, str, str]:
    """Make a base and two branches without a conflict."""
    base = head_of(repo)
    return base, branch(repo, "one", base, one_txt="1\n"), branch(repo, "two", base, two_txt="2\n")


def merged(repo: Path, base: str, *commits: str) -> str:
    """Merge legs into the task branch, as the service does."""
    legs = [Contribution(f"leg{n}", f"job-{n}", f"b{n}", each) for n, each in enumerate(commits)]
    return merge_all(repo, "service/task-1", base, legs).head


def test_a_head_of_seen_commits_and_their_merges_was_seen(repo: Path) -> None:
    base, one, two = two_legs(repo)
    head = merged(repo, base, one, two)
    assert saw_all(repo, head, (base, one, two))
    assert saw_all(repo, head, (base, two, one))
    assert saw_all(repo, base, (base,))
    assert saw_all(repo, one, (base, one)), "one branch alone is a head without a merge"


def test_a_review_of_only_a_part_is_none_of_the_whole(repo: Path) -> None:
    base, one, two = two_legs(repo)
    head = merged(repo, base, one, two)
    assert not saw_all(repo, head, (base,)), "of the base only"
    assert not saw_all(repo, head, (base, one))
    assert not saw_all(repo, merged(repo, base, one), ())


def test_a_head_without_a_seen_commit_was_not_seen(repo: Path) -> None:
    base, one, two = two_legs(repo)
    assert not saw_all(repo, one, (base, one, two)), "it saw more than is merged"


def test_a_head_that_moved_was_not_looked_at(repo: Path) -> None:
    base, one, _ = two_legs(repo)
    run_git(repo, "checkout", "-q", "one")
    further = commit_file(repo, "one.txt", "further\n")
    assert not saw_all(repo, further, (base, one))
    assert not saw_all(repo, merged(repo, base, further), (base, one)), "the branch was put forward, then merged"


def test_commits_on_the_other_side_since_then_were_not_looked_at(repo: Path) -> None:
    base, one, _ = two_legs(repo)
    run_git(repo, "checkout", "-q", "main")
    commit_file(repo, "main.txt", "new\n")
    run_git(repo, "checkout", "-q", "one")
    run_git(repo, "merge", "-q", "--no-edit", "main")
    assert not saw_all(repo, head_of(repo), (base, one))


def test_a_rebase_makes_other_commits(repo: Path) -> None:
    base, one, _ = two_legs(repo)
    run_git(repo, "checkout", "-q", "main")
    commit_file(repo, "main.txt", "new\n")
    run_git(repo, "checkout", "-q", "one")
    run_git(repo, "rebase", "-q", "main")
    assert not saw_all(repo, head_of(repo), (base, one))


@pytest.mark.parametrize("how", ["a line is added", "one side is left out", "another file is added", "clean"])
def test_a_merge_that_changes_something_by_itself_was_not_looked_at(repo: Path, how: str) -> None:
    base, one, two = two_legs(repo)
    run_git(repo, "checkout", "-q", "-B", "task", one)
    strategy = ("-s", "ours") if how == "one side is left out" else ()
    run_git(repo, "merge", "-q", "--no-ff", "--no-commit", *strategy, two)
    if how == "a line is added":
        (repo / "two.txt").write_text("2\nevil\n")
    if how == "another file is added":
        (repo / "three.txt").write_text("evil\n")
    run_git(repo, "add", "-A")
    run_git(repo, "commit", "-q", "-m", "merge")
    assert saw_all(repo, head_of(repo), (base, one, two)) is (how == "clean")


def test_both_sides_of_a_file_that_git_merges_by_itself_were_looked_at(repo: Path) -> None:
    lines = [f"{number}\n" for number in range(30)]
    run_git(repo, "checkout", "-q", "main")
    base = commit_file(repo, "long.txt", "".join(lines))
    one = branch(repo, "one", base, long_txt="".join(["first\n", *lines[1:]]))
    two = branch(repo, "two", base, long_txt="".join([*lines[:-1], "last\n"]))
    assert saw_all(repo, merged(repo, base, one, two), (base, one, two))


def test_a_conflict_that_a_person_resolved_was_not_looked_at(repo: Path) -> None:
    base = head_of(repo)
    one, two = branch(repo, "one", base, same_txt="1\n"), branch(repo, "two", base, same_txt="2\n")
    run_git(repo, "checkout", "-q", "-B", "task", one)
    with pytest.raises(Exception, match="returned non-zero"):
        run_git(repo, "merge", "-q", two)
    (repo / "same.txt").write_text("1 and 2\n")
    run_git(repo, "add", "-A")
    run_git(repo, "commit", "-q", "--no-edit")
    assert not saw_all(repo, head_of(repo), (base, one, two))


def test_a_commit_that_is_replaced_in_the_repository_stays_what_it_is(repo: Path) -> None:
    base, one, _ = two_legs(repo)
    run_git(repo, "checkout", "-q", "one")
    further = commit_file(repo, "one.txt", "evil\n")
    run_git(repo, "replace", further, one)
    assert not saw_all(repo, further, (base, one))
    assert holds(repo, further, one)
    run_git(repo, "replace", "-d", further)
    run_git(repo, "checkout", "-q", "main")
    other = commit_file(repo, "main.txt", "new\n")
    run_git(repo, "replace", "--graft", other, further)
    assert not holds(repo, other, one)


def test_a_merge_of_three_at_once_is_not_made_by_the_service(repo: Path) -> None:
    base, one, two = two_legs(repo)
    three = branch(repo, "three", base, three_txt="3\n")
    run_git(repo, "checkout", "-q", "-B", "task", one)
    run_git(repo, "merge", "-q", "--no-edit", two, three)
    assert not saw_all(repo, head_of(repo), (base, one, two, three))


def test_commits_that_are_gone_are_an_error_and_not_an_answer(repo: Path) -> None:
    gone = "0123456789" * 4
    for head, seen in ((gone, (gone,)), (head_of(repo), (gone,)), (gone, (head_of(repo),))):
        with pytest.raises(GitError):
            saw_all(repo, head, seen)
