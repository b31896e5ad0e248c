"""Programs that run for a job: git usually does not; a program ends with the process that waits for it (ruling N3)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from activities.git import command
from activities.git.merges.into_work_folder import merge
from activities.git.merges.task_branch import Contribution, merge_all
from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.worktree_changes import capture_diff, look, touched_files
from activities.git.work_folder.worktrees import add_branch, add_detached, dispose
from tests.activities.git.conftest import commit_file
from tests.waiting import wait_for

pytestmark = pytest.mark.ruling("N3")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record every git command that the service starts."""
    seen: list[str] = []
    popen = command._popen

    def told(where: Path, arguments: tuple[str, ...], *rest: object, **more: object) -> "subprocess.Popen[bytes]":
        seen.append(arguments[0])
        return popen(where, arguments, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(command, "_popen", told)
    return seen


def test_a_writer_s_job_and_a_dependent_reader_s_run_no_git(repo: Path, trees: Path, started: list[str]) -> None:
    leg = add_branch(repo, trees / "w", "service/job-a", "main")
    (leg.path / "new.txt").write_text("x")
    seen = look(leg)
    assert touched_files(leg, seen=seen).files == ("new.txt",)
    head = commit_all(leg, "job-a", "x", seen) or ""
    dispose(repo, leg.path)
    reader = merge(add_detached(repo, trees / "r", "main"), ("service/job-a",))
    (reader.path / "new.txt").write_text("y")
    assert "+y" in capture_diff(reader).text
    dispose(repo, reader.path)
    merge_all(repo, "service/task-1", reader.base, (Contribution("a", "job-a", "service/job-a", head),))
    assert started == []


def test_commits_of_an_agent_s_own_are_fetched_and_a_conflict_is_looked_at_once_more(
    repo: Path, trees: Path, started: list[str]
) -> None:
    leg = add_branch(repo, trees / "w", "service/job-a", "main")
    commit_file(leg.path, "readme.md", "x")
    commit_all(leg, "job-a", "x")
    assert started == ["fetch"]


WAITER = """
import sys
from pathlib import Path
from activities.git.command import git
git(Path(sys.argv[1]), "hash-object", "--no-filters", sys.argv[2])
"""


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("setpriv") is None, reason="setpriv (util-linux) is missing"
)
def test_git_ends_with_a_worker_that_is_killed(repo: Path, tmp_path: Path) -> None:
    """Git waits for a pipe, and nothing else would end it."""
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen([sys.executable, "-c", WAITER, repo, tmp_path / "pipe"]) as worker:
        children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
        wait_for(lambda: [each for each in children.read_text().split() if waits(each)])
        (git,) = children.read_text().split()
        worker.kill()
    wait_for(lambda: not waits(git))


def waits(pid: str) -> bool:
    """Return whether the process is a living git."""
    try:
        name, state = Path(f"/proc/{pid}/comm").read_text().strip(), Path(f"/proc/{pid}/stat").read_text().split()[2]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return name == "git" and state != "Z"
