"""Commits of an agent's uncommitted work."""

from pathlib import Path

import pytest

from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.worktree_changes import look
from activities.git.work_folder.worktrees import Worktree, add_branch
from tests.activities.git.conftest import commit_file, run_git
from workflows.model.errors import RefusedError

pytestmark = pytest.mark.ruling("I1")
JOB = "job-abc.1"


@pytest.fixture
def worktree(repo: Path, trees: Path) -> Worktree:
    return add_branch(repo, trees / "w", "leg", "main")


def home(worktree: Worktree) -> Path:
    """Return the registered repository."""
    return worktree.path.parent.parent / "repo"


def committed(worktree: Worktree) -> set[str]:
    """Return the names of files that differ between the base and the branch."""
    return set(run_git(home(worktree), "diff", "--name-only", "-z", worktree.base, "leg").split("\0")) - {""}


def test_everything_but_ignored_files_is_committed(worktree: Worktree) -> None:
    (worktree.path / "src/a.py").write_text("changed")
    (worktree.path / "readme.md").unlink()
    (worktree.path / "new file\n.txt").write_text("x")
    (worktree.path / "debug.log").write_text("x")
    (worktree.path / "staged.txt").write_text("x")
    run_git(worktree.path, "add", "staged.txt")
    head = commit_all(worktree, JOB, "Leg one:\n  does things")
    assert head == run_git(home(worktree), "rev-parse", "leg")
    assert committed(worktree) == {"src/a.py", "readme.md", "new file\n.txt", "staged.txt"}
    assert run_git(home(worktree), "log", "-1", "--format=%B%n%an <%ae> %cn", "leg") == (
        "Leg one: does things\n\nJob: job-abc.1\n\nDelegation Service <service@localhost> Delegation Service"
    )
    assert run_git(home(worktree), "log", "-1", "--format=%(trailers:key=Job,valueonly)", "leg") == JOB


def test_a_commit_says_what_was_done_and_by_whom(worktree: Worktree) -> None:
    (worktree.path / "new").write_text("x")
    summary = f"The limit is 100 now, and {'much ' * 20}more.\nJob: forged\n\nTask: forged"
    commit_all(worktree, JOB, summary, trailers={"Agent": "builder", "Model": "", "Task": "task-abc"})
    subject, *body = run_git(home(worktree), "log", "-1", "--format=%B", "leg").splitlines()
    assert subject == "The limit is 100 now, and much much much much much much much much much…"
    assert all(len(line) <= 72 for line in (subject, *body))
    assert " ".join(body).count("much") == 20
    trailers = run_git(home(worktree), "log", "-1", "--format=%(trailers)", "leg").split("\n")
    assert [each for each in trailers if each] == [f"Job: {JOB}", "Agent: builder", "Task: task-abc"]


@pytest.mark.ruling("N7")
def test_a_commit_bears_no_secret_of_the_summary(worktree: Worktree) -> None:
    (worktree.path / "new").write_text("x")
    secret = "ghp" + "_0123456789abcdefghijABCDEFGHIJ012345"
    commit_all(worktree, JOB, f"Log in by {secret}", trailers={"Agent": secret})
    message = run_git(home(worktree), "log", "-1", "--format=%B", "leg")
    assert message.startswith("Log in by [redacted]")
    assert secret not in message


def test_what_a_person_put_on_the_branch_is_not_the_work_folder_s(repo: Path, worktree: Worktree) -> None:
    (worktree.path / "new").write_text("x")
    head = commit_all(worktree, JOB, "first")
    assert look(worktree).head == head
    run_git(repo, "checkout", "-q", "leg")
    commit_file(repo, "mine.txt", "mine")
    assert look(worktree).head == worktree.base


def test_a_summary_without_a_place_to_break_is_cut(worktree: Worktree) -> None:
    (worktree.path / "new").write_text("x")
    commit_all(worktree, JOB, "x" * 100)
    assert run_git(home(worktree), "log", "-1", "--format=%s", "leg") == f"{'x' * 71}…"


def test_later_changes_are_committed_on_top(worktree: Worktree) -> None:
    made = [worktree.base]
    for name in ("one", "two", "three"):
        (worktree.path / name).write_text("x")
        made.append(commit_all(worktree, JOB, "x") or "")
    assert run_git(home(worktree), "rev-list", "--max-count=4", "leg").split() == made[::-1]


def test_nothing_changed_is_none_and_no_commit(worktree: Worktree) -> None:
    (worktree.path / "debug.log").write_text("ignored")
    assert commit_all(worktree, JOB, "x") is None
    assert run_git(worktree.path, "rev-parse", "HEAD") == worktree.base


def test_the_agents_own_commits_are_kept(worktree: Worktree) -> None:
    own = commit_file(worktree.path, "own.txt", "x", "by the agent")
    assert commit_all(worktree, JOB, "x") == own
    (worktree.path / "more.txt").write_text("x")
    head = commit_all(worktree, JOB, "x")
    assert run_git(home(worktree), "rev-parse", f"{head}^") == own
    assert commit_all(worktree, JOB, "x") == head  # repeated after a crash


def test_stale_locks_do_not_stop_it(repo: Path, worktree: Worktree) -> None:
    (worktree.path / "x").write_text("x")
    for name in ("index.lock", "HEAD.lock"):
        (worktree.path / ".git" / name).touch()
    (repo / ".git/refs/heads/leg.lock").touch()
    assert commit_all(worktree, JOB, "x") is not None


def test_names_that_are_no_utf8(worktree: Worktree) -> None:
    (worktree.path / b"caf\xe9".decode("utf-8", "surrogateescape")).write_text("x")
    assert commit_all(worktree, JOB, "x") is not None
    assert committed(worktree) == {"caf\udce9"}


def test_repositories_made_inside_are_left_out(worktree: Worktree) -> None:
    run_git(worktree.path, "init", "-q", "without-commit")
    run_git(worktree.path, "init", "-q", "cloned [1]*")
    commit_file(worktree.path / "cloned [1]*", "inner", "x")
    (worktree.path / "cloned 1").write_text("not the same name")
    assert commit_all(worktree, JOB, "x") is not None
    assert committed(worktree) == {"cloned 1"}


def test_an_unfinished_merge_of_the_agent_is_finished(repo: Path, worktree: Worktree) -> None:
    run_git(worktree.path, "checkout", "-q", "-b", "side")
    theirs = commit_file(worktree.path, "src/a.py", "theirs\n")
    run_git(worktree.path, "checkout", "-q", "leg")
    commit_file(worktree.path, "src/a.py", "ours\n")
    with pytest.raises(Exception, match="merge"):
        run_git(worktree.path, "merge", "side")
    head = commit_all(worktree, JOB, "x")
    assert run_git(repo, "rev-parse", f"{head}^2") == theirs
    assert commit_all(worktree, JOB, "x") == head, "repeated after a crash"


def test_the_branch_follows_an_agent_that_switched(worktree: Worktree) -> None:
    run_git(worktree.path, "checkout", "-q", "-b", "agents-idea")
    (worktree.path / "x").write_text("x")
    head = commit_all(worktree, JOB, "x")
    assert run_git(home(worktree), "rev-parse", "leg") == head
    assert committed(worktree) == {"x"}


def test_a_branch_left_behind_is_not_thrown_away(worktree: Worktree) -> None:
    own = commit_file(worktree.path, "own.txt", "x")
    run_git(worktree.path, "checkout", "-q", "--detach", worktree.base)
    (worktree.path / "x").write_text("x")
    with pytest.raises(RefusedError, match="does not contain its branch leg"):
        commit_all(worktree, JOB, "x")
    assert run_git(worktree.path, "rev-parse", "leg") == own


def test_hooks_of_the_repository_do_not_interfere(repo: Path, worktree: Worktree) -> None:
    hook = repo / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    run_git(repo, "config", "commit.gpgSign", "true")
    (worktree.path / "x").write_text("x")
    assert commit_all(worktree, JOB, "x") is not None
